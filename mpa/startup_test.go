// Both sides of start-up together, and what the tests of each side share.

package mpa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
)

// A peer is the other end of a connection, in a test's hands.
type peer struct {
	t  *testing.T
	nc net.Conn
}

// pipe is a connection in memory and its other end.
func pipe(t *testing.T) (net.Conn, peer) {
	a, b := net.Pipe()
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, peer{t, b}
}

// gets reads the octets that are expected next.
func (p peer) gets(hex string) {
	p.t.Helper()
	want := unhex(p.t, hex)
	got := make([]byte, len(want))
	if n, err := io.ReadFull(p.nc, got); err != nil || !bytes.Equal(got, want) {
		p.t.Errorf("peer got  % x, %v\nexpected % x", got[:n], err, want)
	}
}

// sends writes octets; a connection closed meanwhile is no fault.
func (p peer) sends(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		p.t.Errorf("peer writes: %v", err)
	}
}

func (p peer) sendsHex(hex string) {
	p.t.Helper()
	p.sends(unhex(p.t, hex))
}

// seesEnd expects the end of the connection, and no octet before it.
func (p peer) seesEnd() {
	p.t.Helper()
	if rest, err := io.ReadAll(p.nc); err != nil || len(rest) > 0 {
		p.t.Errorf("peer expects the end, got % x, %v", rest, err)
	}
}

// seesBreak expects an end of the connection that is no graceful one: a reset, or
// where there is none one octet of an FPDU. No octet comes before it.
func (p peer) seesBreak() {
	p.t.Helper()
	rest, err := io.ReadAll(p.nc)
	if !errors.Is(err, syscall.ECONNRESET) && (err != nil || len(rest) != 1) {
		p.t.Errorf("peer expects the connection to break, got % x, %v", rest, err)
	}
}

// seesSilence expects no octet and no end for a long time. It needs a bubble.
func (p peer) seesSilence() {
	p.t.Helper()
	p.nc.SetReadDeadline(time.Now().Add(24 * time.Hour))
	defer p.nc.SetReadDeadline(time.Time{})
	var b [1]byte
	if n, err := p.nc.Read(b[:]); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		p.t.Errorf("peer expects silence, got % x, %v", b[:n], err)
	}
}

// streams checks that nc still carries octets, both ways, as long as you like.
// It needs a bubble.
func (p peer) streams(nc net.Conn) {
	p.t.Helper()
	time.Sleep(24 * time.Hour) // beyond every time limit
	go io.WriteString(nc, "out")
	p.gets("6f7574")
	go p.sendsHex("696e")
	b := make([]byte, 2)
	if _, err := io.ReadFull(nc, b); err != nil || string(b) != "in" {
		p.t.Errorf("read %q, %v", b, err)
	}
}

// Claims: MPA-7.1-2 MPA-7.1-6 MPA-7.1.2-2 MPA-7.1.1-16 MPA-7.1.4-1 MPA-7.1.1-12
// Claims: ME-9.3-1 ME-9.1-5 ME-9.1-13 ME-7-3 ME-5-1 ME-5-3
func TestTwoSidesAgree(t *testing.T) {
	for _, c := range []struct {
		name         string
		icfg, rcfg   Config
		ask, answer  string
		wantI, wantR Params
	}{
		{
			name: "by default", ask: "hello", answer: "welcome",
			icfg:  Config{IRD: 5, ORD: 3},
			rcfg:  Config{IRD: 2, ORD: 16, MaxIRD: 8},
			wantI: Params{Revision: 2, CRC: true, Initiator: true, Enhanced: true, IRD: 5, ORD: 3, PeerIRD: 3, PeerORD: 5},
			wantR: Params{Revision: 2, CRC: true, Enhanced: true, IRD: 3, ORD: 5, PeerIRD: 5, PeerORD: 3},
		},
		{
			name:  "peer-to-peer, Markers one way",
			icfg:  Config{IRD: 5, ORD: 3, PeerToPeer: true, NoCRC: true, Markers: true},
			rcfg:  Config{IRD: 8, ORD: 1, RTR: RTRRead, NoCRC: true},
			wantI: Params{Revision: 2, RecvMarkers: true, Initiator: true, Enhanced: true, PeerToPeer: true, RTR: RTRRead, IRD: 5, ORD: 3, PeerIRD: 8, PeerORD: 1},
			wantR: Params{Revision: 2, SendMarkers: true, Enhanced: true, PeerToPeer: true, RTR: RTRRead, IRD: 8, ORD: 1, PeerIRD: 5, PeerORD: 3},
		},
		{
			name: "revision 1", ask: "one", answer: "too",
			icfg:  Config{Profile: ProfileRFC5044, IRD: 5, ORD: 3},
			rcfg:  Config{IRD: 8, ORD: 1},
			wantI: Params{Revision: 1, CRC: true, Initiator: true, IRD: 5, ORD: 3, PeerIRD: NotNegotiated, PeerORD: NotNegotiated},
			wantR: Params{Revision: 1, CRC: true, IRD: 8, ORD: 1, PeerIRD: NotNegotiated, PeerORD: NotNegotiated},
		},
		{
			name:  "RDMA Consortium",
			icfg:  Config{Profile: ProfileRDMAC},
			rcfg:  Config{Profile: ProfilePermissive},
			wantI: Params{CRC: true, SendMarkers: true, RecvMarkers: true, Initiator: true, PeerIRD: NotNegotiated, PeerORD: NotNegotiated},
			wantR: Params{CRC: true, SendMarkers: true, RecvMarkers: true, PeerIRD: NotNegotiated, PeerORD: NotNegotiated},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := net.Pipe()
				answered := make(chan *Conn)
				go func() {
					defer close(answered)
					r, err := Await(t.Context(), b, c.rcfg)
					if err != nil {
						t.Errorf("Await: %v", err)
						return
					}
					if string(r.PrivateData) != c.ask || r.Revision != c.wantR.Revision || r.IRD != c.wantR.PeerIRD || r.ORD != c.wantR.PeerORD {
						t.Errorf("the Responder's ULP learns %+v", r.Peer)
					}
					conn, err := r.Accept(t.Context(), c.rcfg, []byte(c.answer))
					if err != nil {
						t.Errorf("Accept: %v", err)
						return
					}
					answered <- conn
				}()
				i, p, err := Initiate(t.Context(), a, c.icfg, []byte(c.ask))
				if err != nil {
					t.Fatalf("Initiate: %v", err)
				}
				if string(p.PrivateData) != c.answer || p.IRD != c.wantI.PeerIRD || p.ORD != c.wantI.PeerORD {
					t.Errorf("the Initiator's ULP learns %+v", p)
				}
				r := <-answered
				if r == nil {
					t.FailNow()
				}
				defer i.Close()
				defer r.Close()
				if got := fmt.Sprintf("%+v", i.Params()); got != fmt.Sprintf("%+v", c.wantI) {
					t.Errorf("Initiator %s\n  want    %+v", got, c.wantI)
				}
				if got := fmt.Sprintf("%+v", r.Params()); got != fmt.Sprintf("%+v", c.wantR) {
					t.Errorf("Responder %s\n  want    %+v", got, c.wantR)
				}
				if i.Fenced() || !r.Fenced() {
					t.Errorf("fenced: Initiator %t, Responder %t", i.Fenced(), r.Fenced())
				}
			})
		})
	}
}

// The side that accepted the TCP connection is the Initiator here, and the
// connection has carried a greeting.
//
// Claims: MPA-2-2 MPA-7.1-1 MPA-7.1-3 MPA-7.1.5-3 MPA-7.1.2-11 MPA-7.1.2-7 MPA-7.1.2-12
func TestMPAStartsWhereStreamingEnds(t *testing.T) {
	for _, markers := range []bool{false, true} {
		responder, initiator := tcpPair(t)
		greeting := []byte("let us go into MPA mode")
		if _, err := initiator.Write(greeting); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Markers: markers}
		done := make(chan error, 1)
		sent := pattern(700, 1) // two Markers on its way
		go func() {
			i, _, err := Initiate(t.Context(), initiator, cfg, nil)
			if err != nil {
				done <- err
				return
			}
			i.Append(sent, nil)
			if _, err = flushAll(i); err == nil {
				err = i.CloseWrite()
			}
			var back collector
			if err == nil {
				if err = i.Receive(&back); err == io.EOF && len(back.got) == 1 && bytes.Equal(back.got[0], sent) {
					err = nil
				}
			}
			done <- err
		}()
		got := make([]byte, len(greeting))
		if _, err := io.ReadFull(responder, got); err != nil || !bytes.Equal(got, greeting) {
			t.Fatalf("greeting %q, %v", got, err)
		}
		req, err := Await(t.Context(), responder, cfg)
		if err != nil {
			t.Fatal(err)
		}
		r, err := req.Accept(t.Context(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !r.Fenced() {
			t.Error("the Responder may send before the first FPDU")
		}
		var c collector
		if err := r.Receive(&c); err != io.EOF || len(c.got) != 1 || !bytes.Equal(c.got[0], sent) {
			t.Fatalf("markers %t: received %d ULPDUs, %v", markers, len(c.got), err)
		}
		if r.Fenced() {
			t.Error("the Responder may not send after the first FPDU")
		}
		r.Append(c.got[0], nil)
		if _, err := flushAll(r); err != nil {
			t.Error(err)
		}
		if err := r.CloseWrite(); err != nil {
			t.Error(err)
		}
		if err := nettest.Await(t, done); err != nil {
			t.Errorf("markers %t: Initiator: %v", markers, err)
		}
	}
}

// A deafConn has no deadlines.
type deafConn struct{ net.Conn }

func (deafConn) SetDeadline(time.Time) error { return errors.ErrUnsupported }

func TestTimeLimitsHoldWithoutDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		start := time.Now()
		if _, err := Await(t.Context(), deafConn{nc}, Config{}); !hasCode(err, CodeClosed) || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		if d := time.Since(start); d != DefaultRequestTimeout {
			t.Errorf("after %v", d)
		}
		p.seesEnd()
	})
}

func TestADeadlineLeftOnTheConnectionDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		nc.SetDeadline(time.Unix(1, 0))
		go p.sendsHex(reqHex + "40 01 0000")
		r, err := Await(t.Context(), nc, Config{})
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
	})
}

// A scripted connection reads what it is given and takes what it is sent.
type scripted struct {
	net.Conn
	in     *bytes.Reader
	out    bytes.Buffer
	closed bool
}

func (s *scripted) Read(p []byte) (int, error)       { return s.in.Read(p) }
func (s *scripted) Write(p []byte) (int, error)      { return s.out.Write(p) }
func (s *scripted) Close() error                     { s.closed = true; return nil }
func (s *scripted) SetDeadline(time.Time) error      { return nil }
func (s *scripted) SetReadDeadline(time.Time) error  { return nil }
func (s *scripted) SetWriteDeadline(time.Time) error { return nil }

// A hookedConn calls last when a Read has emptied the script.
type hookedConn struct {
	net.Conn
	left int
	last func()
}

func (h *hookedConn) Read(p []byte) (int, error) {
	n, err := h.Conn.Read(p)
	if h.left -= n; h.left == 0 {
		h.last()
	}
	return n, err
}

func TestAContextThatEndsWithTheLastOctetLeavesNoDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nc, p := pipe(t)
		ctx, cancel := context.WithCancel(t.Context())
		rejection := unhex(t, repHex+"70 02 0004 0001 0008")
		hooked := &hookedConn{nc, len(rejection), func() { cancel(); synctest.Wait() }}
		go func() {
			p.gets(plainRequest)
			p.sends(rejection)
		}()
		_, _, err := Initiate(ctx, hooked, plainConfig, nil)
		if _, ok := errors.AsType[*RejectError](err); !ok {
			t.Fatal(err)
		}
		p.streams(nc)
	})
}

func TestNothingIsSentAfterTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	nc := &scripted{in: bytes.NewReader(nil)}
	if _, _, err := Initiate(ctx, nc, Config{}, nil); !errors.Is(err, context.Canceled) || nc.out.Len() > 0 || !nc.closed {
		t.Errorf("sent % x, closed %t, %v", nc.out.Bytes(), nc.closed, err)
	}
	a, b := tcpPair(t)
	p := peer{t, b}
	p.sendsHex(reqHex + "40 01 0000")
	r, err := Await(t.Context(), a, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Accept(ctx, Config{}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.seesEnd()
}

func FuzzInitiate(f *testing.F) {
	for _, g := range goldenFrames {
		f.Add(unhex(f, repHex+g.hex), uint8(0), true)
		f.Add(unhex(f, repHex+g.hex), uint8(1), false)
	}
	for _, b := range malformed(f, ReplyFrame) {
		f.Add(b, uint8(3), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, profile uint8, p2p bool) {
		cfg := Config{Profile: Profile(profile % 4), IRD: 2, MaxIRD: 8, ORD: 4}
		cfg.PeerToPeer = p2p && cfg.Profile == ProfileIETF
		nc := &scripted{in: bytes.NewReader(b)}
		p, _, err := initiate(context.Background(), nc, &cfg, nil)
		_, rejected := errors.AsType[*RejectError](err)
		switch {
		case err == nil:
			if p.Enhanced && (p.ORD > max(p.PeerIRD, 1) || p.IRD > 8) || p.PeerToPeer && p.RTR == 0 {
				t.Fatalf("%+v", p)
			}
		case !rejected && !needsTerminate(err) && !nc.closed:
			t.Fatalf("left open after %v", err)
		}
		if nc.closed != (err != nil && !rejected && !needsTerminate(err)) {
			t.Fatalf("closed %t after %v", nc.closed, err)
		}
	})
}

// Claims: V-10-8
func FuzzAwait(f *testing.F) {
	for _, g := range goldenFrames {
		f.Add(unhex(f, reqHex+g.hex), uint8(0))
		f.Add(unhex(f, reqHex+g.hex+"00"), uint8(3))
	}
	for _, b := range malformed(f, RequestFrame) {
		f.Add(b, uint8(2))
	}
	f.Fuzz(func(t *testing.T, b []byte, profile uint8) {
		cfg := Config{Profile: Profile(profile % 4), IRD: 2, MaxIRD: 8, ORD: 4, DecisionTimeout: -1}
		nc := &scripted{in: bytes.NewReader(b)}
		r, err := Await(context.Background(), nc, cfg)
		if err != nil {
			if !nc.closed || !isStartup(err) && !hasCode(err, CodeClosed) {
				t.Fatalf("closed %t after %v", nc.closed, err)
			}
			return
		}
		if nc.out.Len() > 0 {
			t.Fatalf("% x before the answer", nc.out.Bytes())
		}
		f, p := reply(&cfg, cfg.Profile, r.frame, nil)
		if p.IRD > 8 || p.ORD > 4 {
			t.Fatalf("%+v", p)
		}
		if _, err := AppendFrame(nil, f); err != nil {
			t.Fatal(err)
		}
		// The script is over: the peer is silent no more, or gone.
		if err := r.Reject(nil); err == nil || !nc.closed {
			t.Fatalf("closed %t after %v", nc.closed, err)
		}
	})
}
