// A Receive that waits, and goroutines that poll meanwhile.

package mpa

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A shared transport lets others have the half while Receive waits in read, until it
// is resumed. Only what look is to find is in fed.wire then.
type shared struct {
	fed
	turns   *turns.Turns
	ahead   *readAhead
	waits   chan struct{}
	resume  chan []byte // what arrives then
	resumed bool        // something has arrived for Receive
	ended   bool        // look finds the end
	late    bool        // Receive was interrupted when it might have ended already
	looks   int
}

func (s *shared) share() *turns.Turns { return s.turns }

// Read is the network's: the first step finds nothing.
func (s *shared) Read(step func(uintptr) bool) error {
	for !step(0) {
		s.waits <- struct{}{}
		s.wire = append(s.wire, <-s.resume...)
		if n := len(s.until); n > 0 && !s.until[n-1].IsZero() {
			return os.ErrDeadlineExceeded
		}
		s.resumed = true
	}
	return nil
}

// SetReadDeadline notes whether a wait is interrupted by somebody without the token.
func (s *shared) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && s.turns.Enter() {
		s.late = true
		s.turns.Exit(0, false)
	}
	return s.fed.SetReadDeadline(t)
}

func (s *shared) Readable(uintptr) bool { return false }
func (s *shared) Rest()                 {}

func (s *shared) Try(uintptr) (int, error) {
	if !s.resumed {
		return 0, turns.ErrNothing
	}
	s.resumed = false
	return s.fed.read(s.ahead, false)
}

func (s *shared) read(a *readAhead, alone bool) (int, error) {
	if alone {
		s.waits <- struct{}{}
		s.wire = append(s.wire, <-s.resume...)
		return s.fed.read(a, true)
	}
	s.ahead = a
	return s.turns.Read(s)
}

func (s *shared) look(a *readAhead) (int, error) {
	s.looks++
	if len(s.wire) == 0 && !s.ended {
		_ = a.room() // as a socket does that is asked for nothing
		return 0, nil
	}
	return s.fed.read(a, false)
}

// toTheEnd has nothing more arrive for Receive, and returns what that returns.
func (s *shared) toTheEnd(done <-chan error) error {
	for {
		select {
		case <-s.waits:
			s.resume <- nil
		case err := <-done:
			return err
		}
	}
}

// waiting is a Conn whose Receive waits for octets to come after early.
func waiting(p Params, early []byte, sink Sink) (*Conn, *shared, <-chan error) {
	p.Early, p.Initiator = early, true
	c, s := sharing(p)
	done := make(chan error, 1)
	go func() { done <- c.Receive(sink) }()
	<-s.waits
	return c, s, done
}

// sharing is a Conn over a shared transport.
func sharing(p Params) (*Conn, *shared) {
	s := &shared{fed: fed{direct: true}, waits: make(chan struct{}), resume: make(chan []byte)}
	s.turns = turns.New(s, nil)
	c := feed(&s.fed, p)
	c.connect(s)
	c.reader.transport, c.reader.direct = s, s
	return c, s
}

func TestPollHandsUpWhatHasArrivedWhileReceiveWaits(t *testing.T) {
	for _, p := range everyTerms {
		want, wire, ends := wireOf(p, 20, 3000, 1)
		var got collector
		c, s, done := waiting(p, nil, &got)
		if c.Poll() || len(got.got) > 0 {
			t.Errorf("%s: something was handed up before anything came", termsName(p))
		}
		s.wire = bytes.Clone(wire[:ends[1]])
		if !c.Poll() || !slices.EqualFunc(got.got, want[:2], bytes.Equal) || got.idles != 1 {
			t.Errorf("%s: %d ULPDUs, %d times idle, expected 2 and once", termsName(p), len(got.got), got.idles)
		}
		if c.Poll() {
			t.Errorf("%s: something was handed up twice", termsName(p))
		}
		if n := c.Stats(); n.FPDUsIn != 2 || n.OctetsIn != uint64(ends[1]) {
			t.Errorf("%s: %d frames and %d octets counted, expected 2 and %d", termsName(p), n.FPDUsIn, n.OctetsIn, ends[1])
		}
		s.resume <- bytes.Clone(wire[ends[1]:])
		nettest.Await(t, s.waits)
		s.resume <- nil
		if err := nettest.Await(t, done); err != io.EOF || !slices.EqualFunc(got.got, want, bytes.Equal) {
			t.Errorf("%s: %v and %d ULPDUs, expected EOF and 3", termsName(p), err, len(got.got))
		}
		s.wire = bytes.Clone(wire)
		if c.Poll() || len(s.wire) != len(wire) {
			t.Errorf("%s: something was read after the end", termsName(p))
		}
	}
}

// Whether it could be placed or not, Poll goes on with a ULPDU that has begun to arrive, and so
// does Receive: a consumer that polls without end may keep Receive from its processor.
func TestPollAndReceiveGoOnWithAULPDUThatHasBegun(t *testing.T) {
	for _, n := range []int{100, 60000} {
		want, wire, ends := wireOf(Params{}, 20, n, 30)
		for _, cut := range []int{1, fpdu.LengthSize, fpdu.LengthSize + headSize + 1, ends[1] - ends[0] - 1} {
			for _, polls := range []bool{true, false} {
				got := &placer{}
				c, s, done := waiting(Params{}, nil, got)
				s.wire = bytes.Clone(wire[:ends[0]+cut])
				if !c.Poll() || len(got.got) != 1 {
					t.Errorf("length %d, %d octets of it: %d ULPDUs handed up, expected 1", n, cut, len(got.got))
				}
				rest := bytes.Clone(wire[ends[0]+cut:])
				if polls {
					for s.wire = append(s.wire, rest...); len(s.wire) > 0; { // as much as the buffer takes
						if !c.Poll() {
							t.Fatalf("length %d, %d octets of it: the rest is left", n, cut)
						}
					}
					if rest = nil; len(got.got) != len(want) {
						t.Errorf("length %d, %d octets of it: %d ULPDUs handed up, expected 3", n, cut, len(got.got))
					}
				}
				s.resume <- rest
				if err := s.toTheEnd(done); err != io.EOF || !slices.EqualFunc(got.got, want, bytes.Equal) {
					t.Errorf("length %d, %d octets of it, polled %t: %v and %d ULPDUs, expected EOF and 3", n, cut, polls, err, len(got.got))
				}
			}
		}
	}
}

// Over a connection that Go's network poller does not know, Receive is woken for a ULPDU that can
// be placed, and Poll leaves that to it.
func TestPollLeavesWhatCanBePlacedToAReceiveThatIsWoken(t *testing.T) {
	want, wire, ends := wireOf(Params{}, 20, 60000)
	got := &placer{}
	c, s, done := waiting(Params{}, nil, got)
	c.reader.leaves = true
	s.wire = bytes.Clone(wire[:ends[0]+fpdu.LengthSize+headSize])
	c.Poll()
	if s.wire = bytes.Clone(wire[ends[0]+fpdu.LengthSize+headSize:]); c.Poll() {
		t.Error("the rest was taken from Receive")
	}
	s.resume <- nil
	if err := s.toTheEnd(done); err != io.EOF || !slices.EqualFunc(got.got, want, bytes.Equal) {
		t.Errorf("%v and %d ULPDUs, expected EOF and 2", err, len(got.got))
	}
}

// The octets behind a ULPDU that is being placed are its CRC field, not the beginning of
// the next FPDU.
func TestNobodyPollsInTheMiddleOfAULPDUThatIsPlaced(t *testing.T) {
	want, wire, ends := wireOf(Params{}, 60002, 20) // no PAD
	got := &placer{}
	body := ends[0] - fpdu.CRCSize
	c, s := sharing(Params{Initiator: true, Early: wire[:fpdu.LengthSize+headSize]})
	s.wire = bytes.Clone(wire[fpdu.LengthSize+headSize : body])
	done := make(chan error, 1)
	go func() { done <- c.Receive(got) }()
	nettest.Await(t, s.waits) // for the CRC field
	s.wire = bytes.Clone(wire[body:])
	if c.Poll() || len(s.wire) != len(wire)-body {
		t.Error("somebody polled")
	}
	s.resume <- nil
	nettest.Await(t, s.waits)
	s.wire = bytes.Clone(wire[ends[0]:])
	if want = append(want, want[1]); !c.Poll() || s.looks != 1 {
		t.Errorf("%d looked, expected one, afterwards", s.looks)
	}
	s.resume <- nil
	if err := nettest.Await(t, done); err != io.EOF || !slices.EqualFunc(got.got, want, bytes.Equal) {
		t.Errorf("%v and %d ULPDUs, expected EOF and 3", err, len(got.got))
	}
}

func TestReceiveTellsWhatEndedTheReceptionInPoll(t *testing.T) {
	refusal := errors.New("refused")
	p := Params{CRC: true}
	_, wire, _ := wireOf(p, 20)
	spoilt := bytes.Clone(wire)
	spoilt[10] ^= 1
	for _, v := range []struct {
		name  string
		wire  []byte
		end   error
		sink  collector
		check func(error) bool
	}{
		{"the end", nil, io.EOF, collector{}, func(err error) bool { return err == io.EOF }},
		{"a reset", nil, syscall.ECONNRESET, collector{}, func(err error) bool {
			return hasCode(err, CodeClosed) && errors.Is(err, syscall.ECONNRESET)
		}},
		{"a CRC", spoilt, nil, collector{}, func(err error) bool { return hasCode(err, CodeCRC) }},
		{"the Sink", wire, nil, collector{refuse: refusal}, func(err error) bool { return err == refusal }},
	} {
		c, s, done := waiting(p, nil, &v.sink)
		s.wire = bytes.Clone(v.wire)
		if v.end != nil {
			s.end, s.ended = v.end, true
		}
		c.Poll()
		if s.late {
			t.Errorf("%s: a Drain that follows might be interrupted", v.name)
		}
		s.wire = bytes.Clone(wire)
		if c.Poll() {
			t.Errorf("%s: something was handed up afterwards", v.name)
		}
		s.resume <- nil
		if err := nettest.Await(t, done); !v.check(err) {
			t.Errorf("%s: %v", v.name, err)
		}
		if err := c.Receive(&v.sink); !v.check(err) {
			t.Errorf("%s: %v the second time", v.name, err)
		}
		if n := len(s.until); n != 2 || s.until[0].IsZero() || !s.until[1].IsZero() {
			t.Errorf("%s: deadlines %v, expected one that is past and none", v.name, s.until)
		}
	}
}

func TestPollKeepsNoBufferOfAReceiveThatRests(t *testing.T) {
	c, s, done := waiting(Params{}, nil, &collector{})
	c.reader.rest()
	c.Poll()
	if c.reader.buffer != nil {
		t.Error("a buffer is kept for nothing")
	}
	s.resume <- nil
	nettest.Await(t, done)
}

func TestPollAndWaitAreForDirectTransports(t *testing.T) {
	c := feed(&fed{}, Params{Initiator: true})
	c.Interrupt()
	c.Leave()
	if c.Wait(context.Background()) || c.Poll() {
		t.Error("a transport is shared that cannot be")
	}
}
