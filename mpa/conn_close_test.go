// How a Conn ends, and what of it goes on.

package mpa

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa/internal/fpdu"
)

// Claims: MPA-7.2-1 MPA-7.2-2 DDP-6.2.1-7
func TestTheEndOfOneHalfLeavesTheOther(t *testing.T) {
	a, b := tcpPair(t)
	x, y := NewConn(a, Params{Initiator: true}), NewConn(b, Params{Initiator: true})
	x.Append([]byte("last"), nil)
	if _, err := flushAll(x); err != nil {
		t.Fatal(err)
	}
	if err := x.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s := &collector{}
	if err := y.Receive(s); err != io.EOF || len(s.got) != 1 {
		t.Errorf("%v and %d ULPDUs, expected EOF and 1", err, len(s.got))
	}
	y.Append([]byte("answer"), nil)
	if _, err := flushAll(y); err != nil {
		t.Fatal(err)
	}
	if err := y.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	s = &collector{}
	if err := x.Receive(s); err != io.EOF || len(s.got) != 1 {
		t.Errorf("%v and %d ULPDUs, expected EOF and 1", err, len(s.got))
	}
}

// A pipe has no halves.
func TestAConnectionWithoutHalvesIsClosedWhole(t *testing.T) {
	a, b := media["pipe"](t)
	x, y := NewConn(a, Params{Initiator: true}), NewConn(b, Params{Initiator: true})
	if err := x.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]*Conn{"here": x, "there": y} {
		if err := c.Receive(&collector{}); err != io.EOF {
			t.Errorf("%s: %v, expected EOF", name, err)
		}
	}
	if err := x.Drain(); err != nil {
		t.Errorf("Drain: %v, expected nil", err)
	}
}

// Claims: MPA-8-10
func TestAFrameErrorLeavesTheConnectionToTheULP(t *testing.T) {
	for _, code := range []Code{CodeCRC, CodeMarker} {
		eachMedium(t, func(t *testing.T, a, b net.Conn) {
			wire := encode(0, []byte("spoilt"), true, true)
			wire[3] ^= 4
			if code == CodeMarker {
				putCRC(wire)
			}
			c := NewConn(b, Params{CRC: true, RecvMarkers: true})
			c.fenced.Store(false)
			go a.Write(wire)
			if err := c.Receive(&collector{}); !hasCode(err, code) {
				t.Fatalf("%v, expected code %d", err, code)
			}
			done := make(chan error, 1)
			go func() {
				c.Append([]byte("diagnosis"), nil)
				_, err := flushAll(c)
				done <- err
			}()
			buf := make([]byte, fpdu.Size(0, 9, false))
			if _, err := io.ReadFull(a, buf); err != nil {
				t.Fatal(err)
			}
			if err := nettest.Await(t, done); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Claims: MPA-8-1
func TestCloseAndResetEndWhatWaits(t *testing.T) {
	for name, end := range map[string]func(c *Conn) error{"Close": (*Conn).Close, "Reset": (*Conn).Reset} {
		t.Run(name, func(t *testing.T) {
			eachMedium(t, func(t *testing.T, a, b net.Conn) {
				c := NewConn(a, Params{Initiator: true})
				errs := make(chan error, 2)
				go func() { errs <- c.Receive(&collector{}) }()
				go func() {
					for {
						c.Append(pattern(60000, 1), nil)
						if _, err := flushAll(c); err != nil {
							errs <- err
							return
						}
					}
				}()
				// The peer reads once, so that both are under way.
				if _, err := b.Read(make([]byte, 10)); err != nil {
					t.Fatal(err)
				}
				if err := end(c); err != nil {
					t.Error(err)
				}
				for range 2 {
					if err := nettest.Await(t, errs); !hasCode(err, CodeClosed) {
						t.Errorf("%v, expected code 1", err)
					}
				}
				if _, err := flushAll(c); !hasCode(err, CodeClosed) {
					t.Errorf("Flush afterwards: %v, expected code 1", err)
				}
			})
		})
	}
}

// Claims: MPA-8-1
func TestADeadlineEndsTheReception(t *testing.T) {
	eachMedium(t, func(t *testing.T, a, _ net.Conn) {
		c := NewConn(a, Params{})
		if err := c.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		if err := c.Drain(); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Drain: %v, expected the deadline", err)
		}
		c = NewConn(a, Params{})
		if err := c.Receive(&collector{}); !hasCode(err, CodeClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Receive: %v, expected code 1, the deadline", err)
		}
		c = NewConn(a, Params{Initiator: true})
		if err := c.SetWriteDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
		c.Append([]byte("late"), nil)
		if _, err := flushAll(c); !hasCode(err, CodeClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Flush: %v, expected code 1, the deadline", err)
		}
	})
}
