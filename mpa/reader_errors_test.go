// What ends the reception, and that it ends it.

package mpa

import (
	"errors"
	"io"
	"os"
	"slices"
	"syscall"
	"testing"
)

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
		{"marker", Params{CRC: true, RecvMarkers: true}, func(f []byte) { f[512-112+3] ^= 4; putCRC(f) }, CodeMarker},
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

// However long the ULPDU, and however it comes: no octet of it is handed up, and
// none placed, before the CRC held.
//
// Claims: MPA-6-1 MPA-8-2 MPA-4.4-13
func TestAULPDUOfAnyLengthWaitsForItsCRC(t *testing.T) {
	for _, p := range everyTerms {
		if !p.CRC {
			continue
		}
		for _, n := range []int{1, 18, 20, 600, 27000, 30000, 50000, MaxMULPDU} {
			for _, portion := range []func() int{whole, random(3000)} {
				for _, direct := range []bool{false, true} {
					_, wire, ends := wireOf(p, 20, n, 20)
					wire[ends[1]-1] ^= 0x80
					s := &placer{skip: 14}
					err := feed(&fed{wire: wire, portion: portion, direct: direct}, p).Receive(s)
					if !hasCode(err, CodeCRC) || len(s.got) != 1 || s.place != nil {
						t.Errorf("%s, %d octets: %v, %d ULPDUs and %d octets placed, expected code 2, the one before and none",
							termsName(p), n, err, len(s.got), len(s.place))
					}
				}
			}
		}
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

// errSink fails in the method that the test chooses.
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
