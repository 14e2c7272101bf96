package mpa

// The receiving half over a transport that gives the octets in any portions.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"
)

// A fed transport gives wire, at most portion() octets at a time, then end.
type fed struct {
	wire    []byte
	portion func() int
	end     error
	direct  bool           // it places
	before  func(read int) // called where a socket may wait
	given   int            // octets so far
	largest int            // room offered to a read
}

func (f *fed) tries() bool                     { return false }
func (f *fed) places() bool                    { return f.direct }
func (f *fed) close()                          {}
func (f *fed) flush(*batch, Guard, bool) error { return errors.ErrUnsupported }

func (f *fed) next(room int) []byte {
	if f.before != nil {
		f.before(f.given)
	}
	n := min(room, f.portion(), len(f.wire))
	p := f.wire[:n]
	f.wire = f.wire[n:]
	f.given += n
	return p
}

func (f *fed) read(p []byte) (int, error) {
	f.largest = max(f.largest, len(p))
	if len(p) == 0 {
		return 0, errors.New("a read of no octets")
	}
	if x := f.next(len(p)); len(x) > 0 {
		return copy(p, x), nil
	}
	return 0, f.end
}

func (f *fed) readWindows(s Sink, off, rest int, more []byte) (int, error) {
	x := f.next(rest + len(more))
	windows, err := s.Window(nil, off)
	if err != nil {
		return 0, windowError{err}
	}
	defer s.Release()
	n := 0
	for _, w := range append(windows, more) {
		k := copy(w, x)
		x = x[k:]
		n += k
	}
	if n == 0 {
		return 0, f.end
	}
	return n, nil
}

// Ways to portion.
func whole() int  { return 1 << 30 }
func single() int { return 1 }
func random(most int) func() int {
	r := rand.New(rand.NewPCG(5, 6))
	return func() int { return 1 + r.IntN(most) }
}

// feed is a Conn whose receiving half gets what f gives.
func feed(f *fed, p Params) *Conn {
	c := &Conn{params: p, transport: f}
	c.fenced.Store(!p.Initiator)
	if f.end == nil {
		f.end = io.EOF
	}
	if f.portion == nil {
		f.portion = whole
	}
	c.reader = newReader(f, p, &c.fenced, &c.stats)
	return c
}

var everyTerms = []Params{
	{},
	{CRC: true},
	{RecvMarkers: true},
	{CRC: true, RecvMarkers: true},
}

func termsName(p Params) string { return fmt.Sprintf("crc=%t/markers=%t", p.CRC, p.RecvMarkers) }

// wireOf is the octets of ULPDUs of the lengths given, and where each FPDU
// ends.
func wireOf(p Params, lengths ...int) (ulpdus [][]byte, wire []byte, ends []int) {
	ref := refStream{markers: p.RecvMarkers, crc: p.CRC}
	for i, n := range lengths {
		u := pattern(n, i)
		ulpdus = append(ulpdus, u)
		wire = append(wire, ref.send(u)...)
		ends = append(ends, len(wire))
	}
	return ulpdus, wire, ends
}

// Segments of TCP need not begin with FPDUs: the length fields tell.
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

// Claims: MPA-8-2 MPA-8-3 MPA-8-5 MPA-8-6 MPA-8-9 MPA-4.4-6 MPA-4.4-13 MPA-6-1
func TestAfterAnErrorNothingMoreIsHandedUp(t *testing.T) {
	flip := func(f []byte) { f[9] ^= 1 }
	for _, v := range []struct {
		name  string
		p     Params
		spoil func(frame []byte) // the second frame; its marker is at 512-108
		code  Code
	}{
		{"CRC", Params{CRC: true}, flip, CodeCRC},
		{"CRC with markers", Params{CRC: true, RecvMarkers: true}, flip, CodeCRC},
		{"marker", Params{CRC: true, RecvMarkers: true}, func(f []byte) { f[512-112+3] ^= 4; putCRC(f, true) }, CodeMarker},
		{"marker without CRC", Params{RecvMarkers: true}, func(f []byte) { f[512-112+3] ^= 4 }, CodeMarker},
		{"length above the limit", Params{CRC: true}, func(f []byte) { f[0], f[1] = 0xfd, 0x01 }, CodeMarker},
		{"greatest length", Params{}, func(f []byte) { f[0], f[1] = 0xff, 0xff }, CodeMarker},
	} {
		t.Run(v.name, func(t *testing.T) {
			_, wire, ends := wireOf(v.p, 102, 600, 50, 50)
			v.spoil(wire[ends[0]:ends[1]])
			s := &collector{}
			c := feed(&fed{wire: wire}, v.p)
			err := c.Receive(s)
			if !hasCode(err, v.code) || len(s.got) != 1 {
				t.Fatalf("%v and %d ULPDUs, expected code %d and 1", err, len(s.got), v.code)
			}
			if again := c.Receive(s); again != err || len(s.got) != 1 {
				t.Errorf("then %v and %d ULPDUs, expected the same error and no more", again, len(s.got))
			}
			if err := c.Drain(); err != nil || len(s.got) != 1 {
				t.Errorf("draining: %v and %d ULPDUs, expected nil and no more", err, len(s.got))
			}
		})
	}
}

// Claims: MPA-7.2-2 MPA-8-1
func TestTheEndIsGracefulBetweenFramesAndAnErrorWithinThem(t *testing.T) {
	for _, p := range everyTerms {
		for _, direct := range []bool{false, true} {
			_, wire, ends := wireOf(p, 508, 30000, 7)
			for at := range len(wire) {
				if at > 600 && at < len(wire)-600 && at%101 != 0 {
					continue
				}
				c := feed(&fed{wire: wire[:at], portion: random(5000), direct: direct}, p)
				s := &placer{skip: 14}
				err := c.Receive(s)
				done, whole := slices.BinarySearch(ends, at)
				if whole || at == 0 {
					if err != io.EOF {
						t.Fatalf("%s: cut at %d, between frames: %v, expected EOF", termsName(p), at, err)
					}
					done = min(done+1, at)
				} else if !hasCode(err, CodeClosed) || !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Fatalf("%s: cut at %d, within a frame: %v, expected code 1, unexpected EOF", termsName(p), at, err)
				}
				if len(s.got) != done {
					t.Fatalf("%s: cut at %d: %d ULPDUs, expected %d", termsName(p), at, len(s.got), done)
				}
			}
		}
	}
}

// Claims: MPA-8-1 MPA-8-5
func TestALostConnectionIsCodeOneWhereverItHappens(t *testing.T) {
	_, wire, ends := wireOf(Params{}, 30, 30000)
	for _, cause := range []error{syscall.ECONNRESET, syscall.ETIMEDOUT, os.ErrDeadlineExceeded} {
		for _, at := range []int{0, 1, ends[0], ends[0] + 500, len(wire)} {
			c := feed(&fed{wire: wire[:at], end: cause, direct: true}, Params{})
			if err := c.Receive(&placer{skip: 14}); !hasCode(err, CodeClosed) || !errors.Is(err, cause) {
				t.Errorf("%v after %d octets: %v, expected code 1 with the cause", cause, at, err)
			}
		}
	}
}

// A length of 0 is no more than a ULPDU without a header, which DDP refuses;
// one that the CRC does not bear out is noise.
func TestAnEmptyULPDUIsHandedUp(t *testing.T) {
	for _, p := range everyTerms {
		ref := refStream{markers: p.RecvMarkers, crc: p.CRC}
		s := &collector{}
		if err := feed(&fed{wire: ref.send(nil)}, p).Receive(s); err != io.EOF {
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

// idleSink tells what came between calls of Idle.
type idleSink struct {
	placer
	since int
	log   []int
}

func (s *idleSink) ULPDU(u []byte) error { s.since++; return nil }
func (s *idleSink) End() error           { s.since++; return nil }
func (s *idleSink) Idle()                { s.log, s.since = append(s.log, s.since), 0 }

func TestIdleComesOnceAfterWhatWasReadIsHandedUp(t *testing.T) {
	_, wire, ends := wireOf(Params{}, 20, 20, 20, 20)
	portions := []int{ends[2], 3, 3, len(wire)}
	f := &fed{wire: wire, portion: func() int {
		n := portions[0]
		portions = append(portions[1:], whole())
		return n
	}}
	s := &idleSink{}
	f.before = func(int) {
		if s.since != 0 {
			t.Errorf("the Conn may wait, and Idle has not followed %d ULPDUs", s.since)
		}
	}
	if err := feed(f, Params{}).Receive(s); err != io.EOF || !slices.Equal(s.log, []int{3, 1}) {
		t.Errorf("%v, Idle after %v ULPDUs, expected EOF, 3 and 1", err, s.log)
	}
}

// errSink fails where it is told to.
type errSink struct {
	placer
	at  string
	err error
}

func (s *errSink) fail(at string) error {
	if s.at == at {
		return s.err
	}
	return nil
}

func (s *errSink) ULPDU([]byte) error { s.got = append(s.got, nil); return s.fail("ULPDU") }
func (s *errSink) End() error         { s.got = append(s.got, nil); return s.fail("End") }
func (s *errSink) Begin(head []byte, n int) (int, bool, error) {
	skip, ok, _ := s.placer.Begin(head, n)
	return skip, ok, s.fail("Begin")
}
func (s *errSink) Window(dst [][]byte, off int) ([][]byte, error) {
	if err := s.fail("Window"); err != nil {
		return nil, err
	}
	if s.at == "second Window" && off > s.skip {
		return nil, s.err
	}
	return s.placer.Window(dst, off)
}

func TestAnErrorOfTheSinkEndsTheReception(t *testing.T) {
	_, wire, _ := wireOf(Params{}, 30, 30000, 30, 30)
	for at, handed := range map[string]int{"ULPDU": 1, "Begin": 1, "Window": 1, "second Window": 1, "End": 2} {
		s := &errSink{placer: placer{skip: 14}, at: at, err: errors.New("refused")}
		c := feed(&fed{wire: wire, portion: random(300), direct: true}, Params{})
		if err := c.Receive(s); err != s.err || len(s.got) != handed || s.held {
			t.Errorf("%s: %v, %d handed up, held %t; expected the error, %d, false", at, err, len(s.got), s.held, handed)
		}
		if err := c.Receive(s); err != s.err || len(s.got) != handed {
			t.Errorf("%s: then %v, %d handed up, expected the same", at, err, len(s.got))
		}
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
	c := feed(&fed{wire: wire, portion: random(300), direct: true}, Params{})
	if err := c.Receive(s); err != io.EOF || !slices.EqualFunc(s.got, want, bytes.Equal) {
		t.Errorf("%v and %d ULPDUs, expected EOF and 2", err, len(s.got))
	}
	if s.asked != 2 {
		t.Errorf("asked %d times, expected once for each ULPDU", s.asked)
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
			{"one long frame", 0, single, wire[:65000], maxFPDU, 128 << 10},
			{"flood", 0, whole, wire, defaultReadBuffer, defaultReadBuffer},
			{"flood, limit chosen", 100 << 10, whole, wire, 100 << 10, 100 << 10},
			{"flood, limit too small", 1, whole, wire, maxFPDU, maxFPDU},
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
		ref := refStream{markers: markers, crc: crc}
		want, code := ref.receive(wire)
		r := rand.New(rand.NewPCG(seed, 0))
		most := 1 + r.IntN(1<<r.IntN(17))
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
	})
}
