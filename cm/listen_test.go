package cm_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
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

// A listener serves good peers whatever bad ones have done before.
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
				if err := errors.Join(err, <-done); err != nil {
					t.Fatal(err)
				}
				works(t, a, b, qa)
				if err := c.Close(t.Context()); err != nil {
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
	if err := <-waiting; !errors.Is(err, cm.ErrClosed) {
		t.Errorf("Accept ends with %v", err)
	}
	// What Accept has returned is the consumer's.
	if _, err := taken.Accept(t.Context(), b.qp, cm.Params{}); err != nil {
		t.Error(err)
	}
	if err := <-dialed; err != nil {
		t.Error(err)
	}
	if _, err := silent.Read(make([]byte, 1)); err == nil {
		t.Error("the silent connection is open")
	}
	if nc, err := net.Dial("tcp", addr); err == nil {
		_ = nc.Close()
		t.Error("somebody listens still")
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
		ln := cm.NewListener(b.rnic, pipes, cm.ListenConfig{})
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
			t.Errorf("the dialer is told %v", err)
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
		ln := cm.NewListener(b.rnic, pipes, cm.ListenConfig{Backlog: 2})
		defer ln.Close()
		one, two, three := pipes.dial(), pipes.dial(), pipes.dial()
		synctest.Wait()
		if _, err := one.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the oldest of three is open: %v", err)
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

// Requests that nobody accepts are at most Backlog, and those whose time is
// over make room and are not handed out.
func TestRequestsThatExpiredLeaveTheBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEnd(t, verbs.QPConfig{})
		pipes := newPipes()
		cfg := cm.ListenConfig{Backlog: 1, MPA: mpa.Config{DecisionTimeout: time.Second}}
		ln := cm.NewListener(b.rnic, pipes, cfg)
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

// Whoever waits, waits for a bounded time: each step of the start-up has its
// limit, and a context cuts every one short.
func TestEveryWaitIsBounded(t *testing.T) {
	const limit = 3 * time.Second
	cfg := mpa.Config{ReplyTimeout: limit, RequestTimeout: limit, DecisionTimeout: limit}
	for _, tt := range []struct {
		name string
		wait func(ctx context.Context, e *end, ours, theirs net.Conn) error
		most time.Duration
	}{
		{"for the reply", func(ctx context.Context, e *end, ours, _ net.Conn) error {
			_, err := cm.Connect(ctx, e.qp, ours, cm.Params{MPA: cfg})
			return err
		}, limit},
		{"for the request", func(ctx context.Context, e *end, ours, _ net.Conn) error {
			_, err := cm.Receive(ctx, ours, cfg)
			return err
		}, limit},
		{"for the message that opens the stream", func(ctx context.Context, e *end, ours, theirs net.Conn) error {
			go mpa.Initiate(context.Background(), theirs, mpa.Config{PeerToPeer: true}, nil) // and says nothing
			req, err := cm.Receive(ctx, ours, cfg)
			if err != nil {
				return err
			}
			_, err = req.Accept(ctx, e.qp, cm.Params{})
			if s := e.qp.State(); s != verbs.Error {
				t.Errorf("the queue pair is %v", s)
			}
			return err
		}, 10*time.Second + time.Millisecond}, // and the look for octets behind the request
	} {
		for _, cut := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e := newEnd(t, verbs.QPConfig{})
					ours, theirs := nettest.Pipe()
					defer theirs.Close()
					ctx, want, most := t.Context(), error(os.ErrDeadlineExceeded), tt.most
					if cut {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, time.Second)
						defer cancel()
						want, most = context.DeadlineExceeded, time.Second
					}
					begun := time.Now()
					err := tt.wait(ctx, e, ours, theirs)
					if !errors.Is(err, want) && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("the error is %v", err)
					}
					if took := time.Since(begun); took != most {
						t.Errorf("it took %v, expected %v", took, most)
					}
				})
			})
		}
	}
}

// A request that is not decided upon in time is closed; deciding then fails.
func TestADecisionThatComesTooLateFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		x, y := nettest.Pipe()
		dialed := make(chan error, 1)
		go func() {
			_, err := cm.Connect(t.Context(), a.qp, x, cm.Params{})
			dialed <- err
		}()
		req, err := cm.Receive(t.Context(), y, mpa.Config{DecisionTimeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-dialed; !errors.Is(err, mpa.ErrUnanswered) {
			t.Errorf("the dialer is told %v", err)
		}
		if _, err := req.Accept(t.Context(), b.qp, cm.Params{}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("accepted too late: %v", err)
		}
		if err := req.Reject(nil); !errors.Is(err, mpa.ErrAnswered) {
			t.Errorf("rejected after that: %v", err)
		}
		if s := b.qp.State(); s != verbs.Idle {
			t.Errorf("the queue pair is %v", s)
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
	if err := <-done; err != nil {
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
				x, y := nettest.Pipe()
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

// RDMA over TLS: Wrap is all it takes.
func TestWrapPutsTLSUnderneath(t *testing.T) {
	nettest.CheckLeaks(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"weft.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	var wrapped atomic.Int32
	server := func(nc net.Conn) net.Conn {
		wrapped.Add(1)
		return tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	}
	client := func(nc net.Conn) net.Conn {
		wrapped.Add(1)
		return tls.Client(nc, &tls.Config{RootCAs: roots, ServerName: "weft.test"})
	}
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{Wrap: server})
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	c, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{Wrap: client})
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	copy(b.buf[5000:], "octets that nobody else has seen")
	for id, op := range []verbs.Op{verbs.OpRead, verbs.OpWrite} {
		wr := verbs.SendWR{ID: uint64(id), Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(5000, 300000)}, Remote: b.mr.Remote(5000)}
		if err := a.qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
		if wc := a.next(t); wc.Status != verbs.Success {
			t.Fatalf("%v: %v, %v, %v", op, wc.Status, a.qp.Err(), b.qp.Err())
		}
	}
	if got := string(a.buf[5000:5032]); got != "octets that nobody else has seen" || wrapped.Load() != 2 {
		t.Errorf("read %q; %d connections were wrapped", got, wrapped.Load())
	}
	if err := c.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	if s, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || s != verbs.Idle {
		t.Errorf("the other side is %v, %v", s, b.qp.Err())
	}
}

// pipes is a net.Listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	a, b := nettest.Pipe()
	p.conns <- b
	return a
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return nettest.Addr("listener") }
