package ddp

import (
	"bytes"
	"errors"
	"testing"
)

// A tape is the sending half of an LLP that keeps what it is given.
type tape struct {
	LLP

	mulpdu   int
	segments [][]byte
	written  uint64
	guard    Guard
	faults   bool  // Append panics
	fail     error // what Flush returns, if not nil
	copies   bool  // of AppendVolatile
}

func (l *tape) Version() uint8   { return 1 }
func (l *tape) MULPDU() int      { return l.mulpdu }
func (l *tape) Guard(g Guard)    { l.guard = g }
func (l *tape) Appended() uint64 { return uint64(len(l.segments)) }
func (l *tape) Written() uint64  { return l.written }

func (l *tape) Append(header []byte, payload [][]byte) {
	if l.faults {
		panic(errPages)
	}
	l.segments = append(l.segments, append(bytes.Clone(header), bytes.Join(payload, nil)...))
}

func (l *tape) AppendVolatile(header []byte, payload [][]byte) (copied bool) {
	l.Append(header, payload)
	return l.copies
}

func (l *tape) Flush(bool) (drained bool, err error) {
	if l.guard != nil {
		if !l.guard.Acquire() {
			return false, errors.New("refused")
		}
		defer l.guard.Release()
	}
	if l.fail != nil {
		return false, l.fail
	}
	l.written = l.Appended()
	return true, nil
}

func (l *tape) Truncate(n uint64) uint64 {
	l.segments = l.segments[:max(n, l.written)]
	return l.Appended()
}

// submit appends the rest of the message.
func submit(t *testing.T, s *Sender, message []byte) {
	t.Helper()
	for s.Active() {
		off, n := s.Next()
		if last := s.Append([][]byte{message[off:][:n]}); last == s.Active() {
			t.Fatalf("last %v, Active %v", last, s.Active())
		}
	}
}

func TestASenderNumbersTheMessagesOfEachQueue(t *testing.T) {
	l := &tape{mulpdu: 128}
	s := NewSender(l, nil)
	for i, want := range []struct{ qn, msn uint32 }{{0, 1}, {0, 2}, {1, 1}, {0, 3}} {
		if msn := s.StartUntagged([5]byte{}, want.qn, 5); msn != want.msn {
			t.Errorf("message %d on queue %d is %d, expected %d", i, want.qn, msn, want.msn)
		}
		submit(t, s, []byte("hello"))
		var h Untagged
		if !h.Parse(l.segments[i]) || h.QN != want.qn || h.MSN != want.msn || !h.Last || h.Version != 1 {
			t.Errorf("the header is %+v", h)
		}
	}
}

// A Terminate message that was dropped together with revoked segments is sent again, still
// as the first message of its queue.
func TestAnOnlyMessageThatWasDroppedIsStillTheFirst(t *testing.T) {
	l := &tape{mulpdu: 128}
	s := NewSender(l, nil)
	for range 2 {
		s.StartOnly([5]byte{}, 2, 5)
		submit(t, s, []byte("hello"))
		var h Untagged
		if !h.Parse(l.segments[0]) || h.MSN != 1 {
			t.Errorf("the header is %+v, expected message 1", h)
		}
		if begun := s.Truncate(0); begun || !s.Empty() {
			t.Errorf("begun %v, %d segments", begun, len(l.segments))
		}
	}
}

// What cannot be appended has not been cut: it is tried again, under the MULPDU of
// that moment.
func TestAMessageAdvancesWhenASegmentWasAppended(t *testing.T) {
	message := bytes.Repeat([]byte("0123456789"), 30)
	l := &tape{mulpdu: 128, faults: true}
	s := NewSender(l, nil)
	s.StartTagged(0x40, 7, 1000, uint32(len(message)))
	for _, volatile := range []bool{false, true} {
		off, n := s.Next()
		payload := [][]byte{message[off:][:n]}
		fault := func() (fault any) {
			defer func() { fault = recover() }()
			if volatile {
				s.AppendVolatile(payload)
			} else {
				s.Append(payload)
			}
			return nil
		}()
		if fault != errPages || off != 0 || n != 128-TaggedLen || !s.Active() {
			t.Errorf("[%d, +%d), Active %v: %v", off, n, s.Active(), fault)
		}
	}
	l.faults, l.mulpdu = false, 200
	submit(t, s, message)
	var got []byte
	for i, u := range l.segments {
		var h Tagged
		if !h.Parse(u) || h.STag != 7 || h.TO != 1000+uint64(len(got)) || h.Last != (i == len(l.segments)-1) || len(u) > 200 {
			t.Errorf("segment %d of %d octets: %+v", i, len(u), h)
		}
		got = append(got, u[TaggedLen:]...)
	}
	if !bytes.Equal(got, message) {
		t.Errorf("%d octets of %d were sent, or others", len(got), len(message))
	}
}

func TestADroppedMessageHasNoMoreSegments(t *testing.T) {
	l := &tape{mulpdu: 128, copies: true}
	s := NewSender(l, nil)
	s.StartTagged(0, 1, 0, 1000)
	off, n := s.Next()
	if last, copied := s.AppendVolatile([][]byte{make([]byte, n)}); last || !copied || off != 0 {
		t.Errorf("last %v, copied %v", last, copied)
	}
	s.Drop()
	if s.Active() {
		t.Error("a segment is to come of a message that was dropped")
	}
}

// flag is a Guard.
type flag struct{ refuses bool }

func (f *flag) Acquire() bool { return !f.refuses }
func (f *flag) Release()      {}

// unreadable is an LLP's error about memory.
type unreadable struct{}

func (unreadable) Error() string                       { return "llp: bad memory" }
func (unreadable) Unreadable() (n uint64, cause error) { return 3, errPages }

var errPages = errors.New("the pages are not mapped")

// However an LLP words them, the errors that a stream survives are DDP's.
func TestFlushTellsErrorsOfMemoryFromThoseOfTheStream(t *testing.T) {
	g, broken := &flag{}, errors.New("broken")
	l := &tape{mulpdu: 128}
	s := NewSender(l, g)
	if drained, err := s.Flush(true); !drained || err != nil {
		t.Errorf("drained %v: %v", drained, err)
	}
	g.refuses = true
	if _, err := s.Flush(true); err != ErrRevoked {
		t.Errorf("after a refusal the error is %v", err)
	}
	g.refuses, l.fail = false, broken
	if _, err := s.Flush(true); err != broken {
		t.Errorf("the error is %v, expected the LLP's own", err)
	}
	l.fail = unreadable{}
	var u *UnreadableError
	if _, err := s.Flush(true); !errors.As(err, &u) || u.Segment != 3 || !errors.Is(err, errPages) {
		t.Errorf("the error is %v, expected memory of segment 3", err)
	}
}
