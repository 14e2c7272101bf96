// The receiving half: what is handed up, and when.

package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// Segments of TCP need not begin with FPDUs: the length fields show where FPDUs begin.
//
// Claims: MPA-3-1 MPA-3-7 MPA-4.3-12 MPA-5.1-6 MPA-5.2-1 MPA-6-2 MPA-A.4-1 MPA-4.4-5 MPA-A.5.2-1
func TestULPDUsAreTheSameHoweverTheStreamIsCut(t *testing.T) {
	for _, p := range everyTerms {
		want, wire, _ := wireOf(p, 18, 1, 50000, 2, 64768, 40000, 3, 481, 485, 64767, 300, 64766, 64765, 20, 30000)
		for _, v := range []struct {
			name    string
			portion func() int
			places  bool // ULPDUs come in parts
		}{
			{"whole", whole, false},
			{"single", single, true},
			{"few", random(40), true},
			{"some", random(3000), true},
			{"many", random(100000), true},
		} {
			for _, direct := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%s/direct=%t", termsName(p), v.name, direct), func(t *testing.T) {
					s := &placer{skip: 14}
					c := feed(&fed{wire: wire, portion: v.portion, direct: direct}, p)
					if err := c.Receive(s); err != io.EOF {
						t.Errorf("Receive: %v, expected EOF", err)
					}
					if !slices.EqualFunc(s.got, want, bytes.Equal) {
						t.Errorf("%d ULPDUs arrived, expected %d, or they differ", len(s.got), len(want))
					}
					if !direct || p.CRC || p.RecvMarkers {
						if s.placed > 0 {
							t.Errorf("%d ULPDUs were placed before they were whole, expected none", s.placed)
						}
					} else if v.places && s.placed == 0 {
						t.Error("no ULPDU was read straight to its place")
					}
				})
			}
		}
	}
}

// Not one octet earlier, and not one later: a marker behind the CRC belongs to
// the next FPDU, which may never come.
//
// Claims: MPA-6-3 MPA-6-1 MPA-3-7
func TestAULPDUIsHandedUpWithTheLastOctetOfItsFrame(t *testing.T) {
	for _, p := range everyTerms {
		for _, direct := range []bool{false, true} {
			_, wire, ends := wireOf(p, 40, 485, 455, 27000, 481, 27001, 5)
			s := &placer{skip: 18}
			f := &fed{wire: wire, portion: single, direct: direct}
			f.before = func(given int) {
				want, _ := slices.BinarySearch(ends, given+1)
				if len(s.got) != want {
					t.Fatalf("%s: %d ULPDUs after %d octets, expected %d", termsName(p), len(s.got), given, want)
				}
				if s.held {
					t.Fatalf("%s: memory is held while the Conn waits", termsName(p))
				}
			}
			if err := feed(f, p).Receive(s); err != io.EOF {
				t.Errorf("%s: %v, expected EOF", termsName(p), err)
			}
		}
	}
}

// A length of 0 is no more than a ULPDU without a header, which DDP refuses;
// one that the CRC does not bear out is noise.
func TestAnEmptyULPDUIsHandedUp(t *testing.T) {
	for _, p := range everyTerms {
		ref := fpdutest.Stream{Markers: p.RecvMarkers, CRC: p.CRC}
		s := &collector{}
		if err := feed(&fed{wire: ref.Send(nil)}, p).Receive(s); err != io.EOF {
			t.Errorf("%s: %v, expected EOF", termsName(p), err)
		}
		if len(s.got) != 1 || len(s.got[0]) != 0 {
			t.Errorf("%s: %x, expected one ULPDU of no octets", termsName(p), s.got)
		}
	}
}

// fenceSink looks at the fence from within.
type fenceSink struct {
	placer
	c    *Conn
	open []bool
}

func (s *fenceSink) ULPDU(u []byte) error {
	s.open = append(s.open, !s.c.Fenced())
	return nil
}

func (s *fenceSink) End() error {
	s.open = append(s.open, !s.c.Fenced())
	return nil
}

// Claims: MPA-7.1.2-12
func TestTheFirstValidFrameLiftsTheFence(t *testing.T) {
	for _, direct := range []bool{false, true} {
		for _, n := range []int{20, 30000} {
			_, wire, _ := wireOf(Params{}, n)
			f := &fed{wire: wire, portion: random(1000), direct: direct}
			c := feed(f, Params{})
			f.before = func(given int) {
				if given < len(wire) && !c.Fenced() {
					t.Errorf("length %d: not fenced after %d octets, expected to be until %d", n, given, len(wire))
				}
			}
			s := &fenceSink{c: c, placer: placer{skip: 14}}
			if err := c.Receive(s); err != io.EOF || !slices.Equal(s.open, []bool{true}) {
				t.Errorf("length %d: %v, open when handed up: %v, expected once true", n, err, s.open)
			}
		}
	}
	_, wire, _ := wireOf(Params{CRC: true}, 20)
	wire[5] ^= 1
	c := feed(&fed{wire: wire}, Params{CRC: true})
	if err := c.Receive(&collector{}); !hasCode(err, CodeCRC) || !c.Fenced() {
		t.Errorf("after a bad first frame: %v, fenced %t, expected code 2, true", err, c.Fenced())
	}
	if feed(&fed{}, Params{Initiator: true}).Fenced() {
		t.Error("an Initiator is fenced")
	}
}

// Claims: V-13.1-9
func TestEarlyOctetsAreTheBeginningOfTheStream(t *testing.T) {
	for _, p := range everyTerms {
		want, wire, _ := wireOf(p, 30, 40000, 7)
		for early := range len(wire) {
			if early > 100 && early%997 != 0 {
				continue
			}
			p.Early = bytes.Clone(wire[:early:early])
			s := &placer{skip: 14}
			c := feed(&fed{wire: wire[early:], direct: true}, p)
			if err := c.Receive(s); err != io.EOF || !slices.EqualFunc(s.got, want, bytes.Equal) {
				t.Fatalf("%s, %d octets early: %v and %d ULPDUs, expected EOF and %d", termsName(p), early, err, len(s.got), len(want))
			}
		}
	}
}

// idleSink records what came between calls of Idle.
type idleSink struct {
	placer
	since int
	log   []int
}

func (s *idleSink) ULPDU(u []byte) error { s.since++; return nil }
func (s *idleSink) End() error           { s.since++; return nil }
func (s *idleSink) Idle()                { s.log, s.since = append(s.log, s.since), 0 }

func TestIdleComesOnceAfterWhatWasReadIsHandedUp(t *testing.T) {
	_, wire, ends := wireOf(Params{}, 20, 20, 20, 20, 30000, 30000)
	portions := []int{ends[2], 3, 3, ends[3] - ends[2] + 100, 5000, 20000, 20000}
	f := &fed{wire: wire, direct: true, portion: func() int {
		n := portions[0]
		portions = append(portions[1:], whole())
		return n
	}}
	s := &idleSink{placer: placer{skip: 14}}
	f.before = func(int) {
		if s.since != 0 {
			t.Errorf("the Conn may wait, and Idle has not followed %d ULPDUs", s.since)
		}
	}
	if err := feed(f, Params{}).Receive(s); err != io.EOF || !slices.Equal(s.log, []int{3, 1, 1, 1}) {
		t.Errorf("%v, Idle after %v ULPDUs, expected EOF and 3, 1, 1, 1", err, s.log)
	}
}

// choosySink wants to place nothing.
type choosySink struct {
	collector
	asked int
}

func (s *choosySink) Begin([]byte, int) (int, bool, error) { s.asked++; return 0, false, nil }

func TestASinkThatDoesNotPlaceIsAskedOnceAndGetsTheULPDUWhole(t *testing.T) {
	want, wire, _ := wireOf(Params{}, 30000, 40000)
	s := &choosySink{}
	c := feed(&fed{wire: wire, portion: random(300), direct: true}, Params{Initiator: true})
	if err := c.Receive(s); err != io.EOF || !slices.EqualFunc(s.got, want, bytes.Equal) {
		t.Errorf("%v and %d ULPDUs, expected EOF and 2", err, len(s.got))
	}
	if s.asked != 2 {
		t.Errorf("asked %d times, expected once for each ULPDU", s.asked)
	}
}

// A Responder takes the first ULPDU whole: only that lifts the fence, and with
// it the answer may leave that says what was wrong with it.
func TestAResponderTakesTheFirstULPDUWhole(t *testing.T) {
	want, wire, _ := wireOf(Params{}, 60000, 40000)
	s := &choosySink{}
	c := feed(&fed{wire: wire, portion: random(300), direct: true}, Params{})
	if err := c.Receive(s); err != io.EOF || !slices.EqualFunc(s.got, want, bytes.Equal) {
		t.Errorf("%v and %d ULPDUs, expected EOF and 2", err, len(s.got))
	}
	if s.asked != 1 {
		t.Errorf("asked %d times, expected once, for the second", s.asked)
	}
}

// In a series of long ULPDUs what is read beyond one has to be copied: it is the
// headers of the next and no more. What is small comes with what goes before it.
func TestInASeriesOfLongULPDUsLittleIsReadAhead(t *testing.T) {
	_, wire, _ := wireOf(Params{}, 60000, 60000, 60000, 20, 60000, 60000)
	f := &fed{wire: wire, direct: true, portion: func() int { return 60020 }}
	c := feed(f, Params{Initiator: true})
	if err := c.Receive(&placer{}); err != io.EOF {
		t.Fatal(err)
	}
	want := []int{aheadSize, aheadLeast, aheadLeast, aheadSize, aheadLeast}
	if got := slices.Compact(f.beyond); !slices.Equal(got, slices.Compact(want)) {
		t.Errorf("reads went %d octets beyond what they placed, expected %d", got, want)
	}
}

func TestReceivingAllocatesNothingOnceWarm(t *testing.T) {
	for _, p := range everyTerms {
		for _, direct := range []bool{false, true} {
			_, wire, _ := wireOf(p, 20, 60000, 20, 60000, 508, 40000)
			f := &fed{direct: direct, portion: random(9000)}
			c := feed(f, p)
			s := &placing{place: make([]byte, MaxMULPDU)}
			run := func() {
				f.wire = wire
				c.reader.pos = 0
				if err := c.reader.receive(s); err != io.EOF {
					t.Error(err)
				}
			}
			for range 10 {
				run() // the buffer grows
			}
			if allocs := testing.AllocsPerRun(20, run); allocs != 0 {
				t.Errorf("%s, direct %t: %v allocations, expected none", termsName(p), direct, allocs)
			}
		}
	}
}

// Claims: MPA-A.5.2-1
func TestTheBufferGrowsWithWhatArrivesAndNotBeyondItsLimit(t *testing.T) {
	for _, p := range everyTerms {
		_, wire, _ := wireOf(p, slices.Repeat([]int{64768}, 40)...)
		for _, v := range []struct {
			name        string
			limit       int
			portion     func() int
			wire        []byte
			least, most int
		}{
			{"one octet", 0, single, wire[:100], firstReadBuffer, firstReadBuffer},
			{"promise of a long frame", 0, single, wire[:firstReadBuffer-1], firstReadBuffer, firstReadBuffer},
			{"one long frame", 0, single, wire[:65000], fpdu.MaxSize, 128 << 10},
			{"flood", 0, whole, wire, defaultReadBuffer, defaultReadBuffer},
			{"flood, limit chosen", 200 << 10, whole, wire, 128 << 10, 128 << 10},
			{"flood, limit too small", 1, whole, wire, 64 << 10, 64 << 10},
		} {
			p.ReadBuffer = v.limit
			c := feed(&fed{wire: v.wire, portion: v.portion}, p)
			c.Receive(&choosySink{})
			if got := len(c.reader.buf); got < v.least || got > v.most {
				t.Errorf("%s, %s: a buffer of %d octets, expected %d to %d", termsName(p), v.name, got, v.least, v.most)
			}
		}
	}
}

func TestDrainDropsAllAndEndsWithTheStream(t *testing.T) {
	f := &fed{wire: pattern(100000, 1)}
	if err := feed(f, Params{}).Drain(); err != nil || f.given != 100000 {
		t.Errorf("%v after %d octets, expected nil after 100000", err, f.given)
	}
	c := feed(&fed{end: syscall.ECONNRESET}, Params{})
	if err := c.Drain(); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%v, expected the reset", err)
	}
	if err := c.Receive(&collector{}); err != io.EOF {
		t.Errorf("Receive after Drain: %v, expected EOF", err)
	}
}

// FuzzReceive compares what is handed up, and the error, with the reference,
// over any octets, followed by more of them than a fuzzer cares to make, in
// any portions.
func FuzzReceive(f *testing.F) {
	for i, p := range everyTerms {
		_, wire, ends := wireOf(p, 18, 481, 485, 100, 3, 7)
		f.Add(wire, uint16(0), uint64(i), p.CRC, p.RecvMarkers)
		wire[ends[2]+50] ^= 4
		f.Add(wire, uint16(0), uint64(i), p.CRC, p.RecvMarkers)
		_, wire, _ = wireOf(p, 18, 26000, 7)
		f.Add(wire[:100], uint16(26000), uint64(i), p.CRC, p.RecvMarkers)
	}
	f.Fuzz(func(t *testing.T, wire []byte, more uint16, seed uint64, crc, markers bool) {
		wire = append(wire, pattern(int(more), 0)...)
		ref := fpdutest.Stream{Markers: markers, CRC: crc}
		want, end := ref.Receive(wire)
		code := endCodes[end]
		r := rand.New(rand.NewPCG(seed, 0))
		most := 1 + r.IntN(1<<(4+r.IntN(13)))
		p := Params{CRC: crc, RecvMarkers: markers}
		s := &placer{skip: 14}
		c := feed(&fed{wire: wire, portion: func() int { return 1 + r.IntN(most) }, direct: true}, p)
		err := c.Receive(s)
		if code == 0 && err != io.EOF || code != 0 && !hasCode(err, code) {
			t.Errorf("%v, expected code %d (0: EOF)", err, code)
		}
		if !slices.EqualFunc(s.got, want, bytes.Equal) {
			t.Errorf("%d ULPDUs, expected %d, or they differ", len(s.got), len(want))
		}
		runs := &runner{}
		c = feed(&fed{wire: wire, portion: func() int { return 1 + r.IntN(most) }}, p)
		if again := c.Receive(runs); fmt.Sprint(again) != fmt.Sprint(err) || !slices.EqualFunc(runs.got, want, bytes.Equal) {
			t.Errorf("in runs: %v, expected %v; %d ULPDUs, expected %d, or they differ", again, err, len(runs.got), len(want))
		}
	})
}
