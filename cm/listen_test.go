package cm_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// works moves octets from one end to the other.
func works(t *testing.T, a, b *end, qp *verbs.QP) {
	t.Helper()
	copy(a.buf, "octets")
	err := qp.PostSend(verbs.SendWR{ID: 1, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{b.mr.SGE(0, 0)}})
	if err != nil {
		t.Fatal(err)
	}
	if wc := a.next(t); wc.Status != verbs.Success {
		t.Fatalf("%v: %v", wc.Status, qp.Err())
	}
}

// A listener serves good peers whatever bad ones have done before. They reach it at the
// port that is its own.
//
// Claims: P-10-1
func TestAListenerGoesOnServing(t *testing.T) {
	for _, network := range nettest.Networks() {
		t.Run(network, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
			ln := listen(t, b, network, cm.ListenConfig{})
			for _, bad := range []string{"", "GET / HTTP/1.1\r\n\r\n", "MPA ID Req Frame", "MPA ID Req Frame\x40\x01\x02\x01"} {
				nc, err := net.Dial(network, ln.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.WriteString(nc, bad); err != nil {
					t.Error(err)
				}
				_ = nc.(*net.TCPConn).CloseWrite()
				if _, err := io.Copy(io.Discard, nc); err != nil && bad == "" {
					t.Error(err)
				}
				_ = nc.Close()
				qa, qb := a.newQP(t), b.newQP(t)
				done := accepted(t.Context(), ln, func(r *cm.Request) error {
					_, err := r.Accept(t.Context(), qb, cm.Params{})
					return err
				})
				c, err := cm.Dial(t.Context(), qa, network, ln.Addr().String(), cm.Params{})
				if err := errors.Join(err, nettest.Await(t, done)); err != nil {
					t.Fatal(err)
				}
				works(t, a, b, qa)
				if err := c.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// Close frees the port and every connection that is on its way.
func TestCloseEndsWhatIsOnItsWay(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln, err := cm.Listen(t.Context(), b.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	silent, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	dialed := make(chan error, 1)
	go func() {
		_, err := cm.Dial(t.Context(), a.qp, "tcp", addr, cm.Params{})
		dialed <- err
	}()
	waiting := make(chan error, 1)
	taken, err := ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		_, err := ln.Accept(t.Context())
		waiting <- err
	}()
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	if err := nettest.Await(t, waiting); !errors.Is(err, cm.ErrClosed) {
		t.Errorf("Accept ends with %v", err)
	}
	// What Accept has returned is the consumer's.
	if _, err := taken.Accept(t.Context(), b.qp, cm.Params{}); err != nil {
		t.Error(err)
	}
	if err := nettest.Await(t, dialed); err != nil {
		t.Error(err)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the silent connection is open")
	}
	if nc, err := net.Dial("tcp", addr); err == nil {
		_ = nc.Close()
		t.Error("the port is still listening")
	}
	if _, err := ln.Accept(t.Context()); !errors.Is(err, cm.ErrClosed) {
		t.Errorf("Accept after Close: %v", err)
	}
}

// A queued request is closed with the listener, and its dialer fails.
func TestARequestThatNobodyAcceptsEndsWithTheListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		pipes := newPipes()
		ln := newListener(t, b, pipes, cm.ListenConfig{})
		dialed := make(chan error, 1)
		go func() {
			_, err := cm.Connect(t.Context(), a.qp, pipes.dial(), cm.Params{})
			dialed <- err
		}()
		synctest.Wait() // it is in the queue
		if err := ln.Close(); err != nil {
			t.Error(err)
		}
		if err := <-dialed; !errors.Is(err, mpa.ErrUnanswered) {
			t.Errorf("the dialer's error is %v", err)
		}
		if a.qp.State() != verbs.Idle {
			t.Errorf("its queue pair is %v", a.qp.State())
		}
	})
}

// Connections that say nothing are at most Backlog, and do not shut out those
// that speak: the oldest makes room.
func TestSilentConnectionsMakeRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEnd(t, verbs.QPConfig{})
		pipes := newPipes()
		ln := newListener(t, b, pipes, cm.ListenConfig{Backlog: 2})
		defer ln.Close()
		one, two, three := pipes.dial(), pipes.dial(), pipes.dial()
		synctest.Wait()
		_ = one.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := one.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the oldest of three is open: %v", err)
		}
		if got, want := ln.Refusals(), (cm.Refusals{Evicted: 1}); got != want {
			t.Errorf("the listener has counted %+v, want %+v", got, want)
		}
		for _, nc := range []net.Conn{two, three} {
			_ = nc.SetReadDeadline(time.Now().Add(time.Second))
			if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("one of two is closed: %v", err)
			}
		}
		a := newEnd(t, verbs.QPConfig{})
		done := accepted(t.Context(), ln, func(r *cm.Request) error {
			_, err := r.Accept(t.Context(), b.qp, cm.Params{})
			return err
		})
		if _, err := cm.Connect(t.Context(), a.qp, pipes.dial(), cm.Params{}); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The backlog is 128 unless another one is wanted.
func TestTheBacklogIsWhatIsDocumented(t *testing.T) {
	for _, backlog := range []int{0, -1, 3} {
		want := backlog
		if backlog <= 0 {
			want = 128
		}
		synctest.Test(t, func(t *testing.T) {
			pipes := newPipes()
			ln := newListener(t, newEnd(t, verbs.QPConfig{}), pipes, cm.ListenConfig{Backlog: backlog})
			defer ln.Close()
			for range want {
				defer pipes.dial().Close()
			}
			synctest.Wait()
			if got := ln.Refusals(); got != (cm.Refusals{}) {
				t.Errorf("Backlog %d: of %d connections, %+v", backlog, want, got)
			}
			defer pipes.dial().Close()
			synctest.Wait()
			if got := ln.Refusals(); got != (cm.Refusals{Evicted: 1}) {
				t.Errorf("Backlog %d: of one more, %+v", backlog, got)
			}
		})
	}
}

// Requests that nobody accepts are at most Backlog, and those whose time is
// over make room and are not handed out.
func TestRequestsThatExpiredLeaveTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEnd(t, verbs.QPConfig{})
		pipes := newPipes()
		cfg := cm.ListenConfig{Backlog: 1, MPA: mpa.Config{DecisionTimeout: time.Second}}
		ln := newListener(t, b, pipes, cfg)
		defer ln.Close()
		ask := func() chan error {
			a := newEnd(t, verbs.QPConfig{})
			failed := make(chan error, 1)
			nc := pipes.dial()
			go func() {
				_, err := cm.Connect(t.Context(), a.qp, nc, cm.Params{})
				failed <- err
			}()
			synctest.Wait()
			return failed
		}
		first, second := ask(), ask()
		select {
		case err := <-second:
			if err == nil {
				t.Error("the second request was accepted")
			}
		default:
			t.Error("two requests wait, the backlog is one")
		}
		if err := <-first; err == nil { // when its time is over
			t.Error("the first request was accepted")
		}
		third := ask()
		r, err := ln.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Accept(t.Context(), b.qp, cm.Params{}); err != nil {
			t.Errorf("Accept returned a request that has expired: %v", err)
		}
		if err := <-third; err != nil {
			t.Error(err)
		}
	})
}

// Only an Idle queue pair of the listener's RNIC is connected, and nobody hears
// of another.
//
// Claims: MPA-7.1-7
func TestOnlyAnIdleQueuePairIsConnected(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	busy := b.newQP(t)
	busy.Abort()
	if _, err := cm.Dial(t.Context(), busy, "tcp", "127.0.0.1:0", cm.Params{}); !errors.Is(err, cm.ErrNotIdle) {
		t.Errorf("dialed with a queue pair in Error: %v", err)
	}
	if _, err := cm.Connect(t.Context(), busy, nil, cm.Params{}); !errors.Is(err, cm.ErrNotIdle) {
		t.Errorf("connected with a queue pair in Error: %v", err)
	}
	ln := listen(t, b, "tcp4", cm.ListenConfig{})
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		if _, err := r.Accept(t.Context(), busy, cm.Params{}); !errors.Is(err, cm.ErrNotIdle) {
			t.Errorf("accepted with a queue pair in Error: %v", err)
		}
		if _, err := r.Accept(t.Context(), a.newQP(t), cm.Params{}); !errors.Is(err, verbs.ErrQP) {
			t.Errorf("accepted with another RNIC's: %v", err)
		}
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	if _, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{}); err != nil {
		t.Error(err)
	}
	if err := nettest.Await(t, done); err != nil {
		t.Error(err)
	}
	works(t, a, b, a.qp)
	if _, err := cm.Dial(t.Context(), a.newQP(t), "tcp", "127.0.0.1:http-no-such", cm.Params{}); err == nil {
		t.Error("dialed nowhere")
	}
	if _, err := cm.Listen(t.Context(), b.rnic, "tcp", "256.0.0.1:0", cm.ListenConfig{}); err == nil {
		t.Error("listens nowhere")
	}
}

// A peer that vanishes at any octet of the start-up, or behind it, ends in an
// error within the limits, and in a queue pair that can be used again.
func TestAPeerMayVanishAtAnyOctet(t *testing.T) {
	for at := range uint64(64) {
		for _, dialer := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
				x, y := iwarptest.Pipe()
				if dialer {
					x.ResetAfter(at)
				} else {
					y.ResetAfter(at)
				}
				p := cm.Params{PrivateData: make([]byte, 20)}
				dialed := make(chan error, 1)
				go func() {
					_, err := cm.Connect(t.Context(), a.qp, x, p)
					if err == nil {
						err = a.qp.PostSend(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 1000)}, Remote: b.mr.Remote(0)})
					}
					dialed <- err
				}()
				req, err := cm.Receive(t.Context(), y, mpa.Config{})
				if err == nil {
					_, _ = req.Accept(t.Context(), b.qp, p) // may fail, or not
				}
				_ = y.Close() // whatever has become of it
				<-dialed
				for _, e := range []*end{a, b} {
					e.qp.Abort()
					if _, err := e.qp.WaitState(t.Context(), verbs.Error); err != nil {
						t.Error(err)
					}
					synctest.Wait()
					if err := e.qp.Reset(); err != nil {
						t.Errorf("octet %d: %v", at, err)
					}
				}
			})
		}
	}
}

const attacker, honest = "192.0.2.1", "192.0.2.2"

// Connections that one address opens, silent or past the first half of start-up,
// do not cost others their places, neither in start-up nor in the queue.
//
// Claims: S-6.4.1-2
func TestOneAddressDoesNotShutOutAnother(t *testing.T) {
	for _, speaks := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			b := newEnd(t, verbs.QPConfig{})
			pipes := newPipes()
			ln := newListener(t, b, pipes, cm.ListenConfig{Backlog: 4})
			ask := func(from string) chan error {
				a := newEnd(t, verbs.QPConfig{})
				asked := make(chan error, 1)
				nc := pipes.dialFrom(from)
				go func() {
					_, err := cm.Connect(t.Context(), a.qp, nc, cm.Params{})
					asked <- err
				}()
				return asked
			}
			flood := func() {
				for range 20 {
					if speaks {
						ask(attacker)
					} else {
						pipes.dialFrom(attacker)
					}
					synctest.Wait()
				}
			}
			flood()
			asked := ask(honest)
			synctest.Wait()
			flood()
			if n := b.rnic.Usage().PendingConnections; n > 8 {
				t.Errorf("%d connections wait, with a backlog of 4", n)
			}
			for {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				req, err := ln.Accept(ctx)
				cancel()
				if err != nil {
					t.Errorf("speaks %v: the other address is not among those that wait: %v", speaks, err)
					break
				}
				if req.RemoteAddr().(*net.TCPAddr).IP.String() != honest {
					_ = req.Reject(nil)
					continue
				}
				if req.Origin().Addr.Addr().String() != honest {
					t.Errorf("the request comes from %+v", req.Origin())
				}
				if _, err := req.Accept(t.Context(), b.qp, cm.Params{}); err != nil {
					t.Error(err)
				}
				if err := <-asked; err != nil {
					t.Error(err)
				}
				break
			}
			_ = ln.Close()
		})
	}
}

// Of requests that wait, those of the address with the fewest are accepted first.
func TestNobodyWaitsForAllTheRequestsOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEnd(t, verbs.QPConfig{})
		pipes := newPipes()
		ln := newListener(t, b, pipes, cm.ListenConfig{})
		defer ln.Close()
		for _, from := range []string{attacker, attacker, attacker, honest} {
			a := newEnd(t, verbs.QPConfig{})
			nc := pipes.dialFrom(from)
			go func() { _, _ = cm.Connect(t.Context(), a.qp, nc, cm.Params{}) }()
			synctest.Wait()
		}
		for _, want := range []string{honest, attacker, attacker, attacker} {
			req, err := ln.Accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got := req.RemoteAddr().(*net.TCPAddr).IP.String(); got != want {
				t.Errorf("accepted %s, expected %s", got, want)
			}
			_ = req.Reject(nil)
		}
	})
}

// A connection that is not admitted is reset before start-up. The log says so in few
// lines.
func TestWhoIsNotAdmittedIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEnd(t, verbs.QPConfig{})
		pipes := newPipes()
		var log strings.Builder
		errStranger := errors.New("a stranger")
		ln := newListener(t, b, pipes, cm.ListenConfig{
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
			Wrap:   func(nc net.Conn) net.Conn { t.Error("start-up begins"); return nc },
			Admit: func(nc net.Conn) (*origin.Origin, error) {
				return nil, errStranger
			},
		})
		for range 50 {
			nc := pipes.dialFrom(attacker)
			if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("the peer's error is %v, expected a reset", err)
			}
		}
		_ = ln.Close()
		if n := strings.Count(log.String(), "a stranger"); n == 0 || n > 5 || !strings.Contains(log.String(), "peer="+attacker+":700") {
			t.Errorf("%d lines: %s", n, log.String())
		}
		if n := b.rnic.Usage().PendingConnections; n != 0 {
			t.Errorf("%d connections wait", n)
		}
	})
}

// newListener makes a listener of an end's RNIC.
func newListener(t *testing.T, e *end, ln net.Listener, cfg cm.ListenConfig) *cm.Listener {
	t.Helper()
	l, err := cm.NewListener(e.rnic, ln, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
