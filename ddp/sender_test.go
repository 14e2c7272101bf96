package ddp

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
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
	room     int   // segments in a batch, at most; 0 is any number
	fail     error // what Flush returns, if not nil
	copies   bool  // of AppendVolatile
}

func (l *tape) Version() uint8   { return 1 }
func (l *tape) MULPDU() int      { return l.mulpdu }
func (l *tape) Guard(g Guard)    { l.guard = g }
func (l *tape) Appended() uint64 { return uint64(len(l.segments)) }
func (l *tape) Written() uint64  { return l.written }

func (l *tape) Room() bool { return l.room == 0 || len(l.segments) < l.room }

func (l *tape) Append(header []byte, payload [][]byte) {
	if l.faults || len(payload) > 0 && bytes.HasPrefix(payload[0], []byte("fault")) {
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
		off, n, _ := s.Next(0)
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
		off, n, _ := s.Next(0)
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

// The segments of a run are those that would be cut one by one, from whatever pieces.
func TestSegmentsOfARunAreCutAsSingleOnes(t *testing.T) {
	message := make([]byte, 1000)
	for i := range message {
		message[i] = byte(i * 7)
	}
	starts := map[string]func(s *Sender){
		"tagged":   func(s *Sender) { s.StartTagged(0x40, 7, 1<<40-300, uint32(len(message))) },
		"untagged": func(s *Sender) { s.StartUntagged([5]byte{0x43}, 0, uint32(len(message))) },
	}
	for name, start := range starts {
		single := &tape{mulpdu: 128}
		s := NewSender(single, nil)
		start(s)
		submit(t, s, message)
		for most := 0; most < 1100; most += 57 {
			for _, piece := range []int{1, 100, 128 - TaggedLen, 128 - UntaggedLen, 300, 1000} {
				l := &tape{mulpdu: 128}
				s := NewSender(l, nil)
				start(s)
				for s.Active() {
					off, n, count := s.Next(most)
					before := len(l.segments)
					if n > max(most, s.Size()) || most >= 2*s.Size() && n+s.Size() <= most && int(off)+n < len(message) {
						t.Fatalf("%s: [%d, +%d) of segments of %d, at most %d", name, off, n, s.Size(), most)
					}
					var payload [][]byte
					for p := message[off:][:n]; len(p) > 0; p = p[min(piece, len(p)):] {
						payload = append(payload, p[:min(piece, len(p))])
					}
					kept := fmt.Sprint(payload)
					if last := s.Append(payload); last == s.Active() || len(l.segments) != before+count || fmt.Sprint(payload) != kept {
						t.Fatalf("%s: last %v, Active %v, %d segments, expected %d", name, last, s.Active(), len(l.segments)-before, count)
					}
				}
				if slices.ContainsFunc(s.cut[:cap(s.cut)], func(p []byte) bool { return p != nil }) {
					t.Fatalf("%s: memory of the message is kept", name)
				}
				if !slices.EqualFunc(l.segments, single.segments, bytes.Equal) {
					t.Fatalf("%s: the segments of %d octets at most, in pieces of %d, differ from single ones", name, most, piece)
				}
			}
		}
	}
}

// A run ends where the batch is full, and where memory faults. The message goes on behind the
// last segment.
func TestARunThatEndsEarlyGoesOnBehindIt(t *testing.T) {
	const size = 128 - TaggedLen
	message := bytes.Repeat([]byte{'.'}, 5*size)
	copy(message[3*size:], "fault")
	for _, volatile := range []bool{false, true} {
		l := &tape{mulpdu: 128, room: 2, copies: true}
		s := NewSender(l, nil)
		s.StartTagged(0x40, 7, 1000, uint32(len(message)))
		send := func() (last, copied bool, fault any) {
			defer func() { fault = recover() }()
			off, n, _ := s.Next(1 << 20)
			payload := [][]byte{message[off:][:n]}
			if volatile {
				last, copied = s.AppendVolatile(payload)
			} else {
				last = s.Append(payload)
			}
			return last, copied, nil
		}
		if last, copied, fault := send(); last || copied != volatile || fault != nil || len(l.segments) != 2 {
			t.Errorf("a full batch: last %v, copied %v, %v, %d segments", last, copied, fault, len(l.segments))
		}
		l.room = 0
		if _, _, fault := send(); fault != errPages || len(l.segments) != 3 {
			t.Errorf("a fault: %v, %d segments", fault, len(l.segments))
		}
		if off, n, count := s.Next(1 << 20); off != 3*size || n != 2*size || count != 2 || !s.Active() {
			t.Errorf("then [%d, +%d) in %d segments", off, n, count)
		}
		message := bytes.Repeat([]byte{'.'}, 5*size)
		if last := s.Append([][]byte{message[:2*size]}); !last || s.Active() {
			t.Errorf("the end: last %v, Active %v", last, s.Active())
		}
		for i, u := range l.segments {
			var h Tagged
			if !h.Parse(u) || h.TO != 1000+uint64(i*size) || h.Last != (i == 4) || len(u) != 128 {
				t.Errorf("segment %d: %+v, %d octets", i, h, len(u))
			}
		}
	}
}

func TestAMessageOfNoOctetsIsOneSegment(t *testing.T) {
	l := &tape{mulpdu: 128}
	s := NewSender(l, nil)
	s.StartTagged(0x40, 7, 1000, 0)
	if off, n, count := s.Next(1 << 20); off != 0 || n != 0 || count != 1 {
		t.Errorf("[%d, +%d) in %d segments", off, n, count)
	}
	if last := s.Append(nil); !last || len(l.segments) != 1 {
		t.Errorf("last %v, %d segments", last, len(l.segments))
	}
}

func TestADroppedMessageHasNoMoreSegments(t *testing.T) {
	l := &tape{mulpdu: 128, copies: true}
	s := NewSender(l, nil)
	s.StartTagged(0, 1, 0, 1000)
	off, n, _ := s.Next(0)
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
