package rpcrdma

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// gate is a handler whose procedure 2 waits until leave is closed, or the context
// has ended.
type gate struct {
	entered chan *oncrpc.Request
	leave   chan struct{}
}

func newGate() *gate { return &gate{make(chan *oncrpc.Request, 100), make(chan struct{})} }

func (g *gate) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if r.Proc == 2 {
		g.entered <- r
		select {
		case <-g.leave:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	e := r.Accept(0)
	return e.Finish()
}

func TestShutdownLetsCallsInProgressEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := serve(t, ServerConfig{Handler: g})
		p, idle := s.full(), s.full()
		idle.alive()
		p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
		<-g.entered
		done := make(chan error)
		go func() { done <- s.server.Shutdown(t.Context()) }()
		idle.wantClosed() // while the other still waits
		p.send(wire.Header{XID: 2}, nullCall(2))
		synctest.Wait()
		close(g.leave)
		if m := p.next(); m.XID != 1 {
			t.Errorf("got %+v, want the reply to the call in progress", m)
		}
		p.wantClosed()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := p.end(); err != errClosed && err != ErrServerClosed {
			t.Errorf("the connection ended with %v", err)
		}
		if err := s.refused(); err == nil {
			t.Error("a connection was accepted afterwards")
		}
		idle.close()
		p.close()
	})
}

// wantClosed waits until the server has closed the connection in good order.
func (p *testPeer) wantClosed() {
	p.t.Helper()
	if m, ok := p.nextOrEnd(); ok {
		p.t.Fatalf("got %+v, want the connection to be closed", m)
	}
	if s, err := p.qp.WaitState(p.t.Context(), verbs.Idle, verbs.Error); s != verbs.Idle {
		p.t.Errorf("the connection ended in %v, %v: %v", s, err, p.qp.Err())
	}
}

func TestShutdownThatTakesTooLongEndsAll(t *testing.T) {
	nettest.CheckLeaks(t)
	g := newGate()
	s := serve(t, ServerConfig{Handler: g})
	p := s.full()
	p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
	nettest.Await(t, g.entered)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.server.Shutdown(ctx) }()
	cancel()
	if err := nettest.Await(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("Shutdown: %v", err)
	}
	if err := p.end(); !errors.Is(err, ErrServerClosed) {
		t.Errorf("the connection: %v", err)
	}
}

func TestServeListensUntilItIsTold(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{Allow: func(a net.Addr) bool { return addrOf(a).IsLoopback() }})
	listen := func() *cm.Listener {
		return must(cm.Listen(t.Context(), s.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{}))(t)
	}
	one, two := listen(), listen()
	ctx, cancel := context.WithCancel(t.Context())
	ends := make(chan error)
	go func() { ends <- s.server.Serve(ctx, one) }()
	var peers []*testPeer
	dial := func(ln *cm.Listener) error {
		p := newTestPeer(t, verbs.QPConfig{IRD: 8})
		_, err := cm.Dial(t.Context(), p.qp, "tcp", ln.Addr().String(), cm.Params{})
		peers = append(peers, p)
		return err
	}
	if err := dial(one); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := nettest.Await(t, ends); err != context.Canceled {
		t.Errorf("Serve: %v", err)
	}
	peers[0].alive() // connections stay
	go func() { ends <- s.server.Serve(t.Context(), two) }()
	if err := dial(two); err != nil {
		t.Fatal(err)
	}
	peers[1].alive()
	_ = s.server.Close()
	if err := nettest.Await(t, ends); err != ErrServerClosed {
		t.Errorf("Serve: %v", err)
	}
	if err := dial(two); err == nil {
		t.Error("a closed server was connected to")
	}
}

func TestWhoMayNotConnectIsRejected(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{Allow: func(net.Addr) bool { return false }})
	if err := s.refused(); err == nil {
		t.Error("the connection was accepted")
	}
}

// refused connects and returns what comes of it.
func (s *serving) refused() error {
	a, b := iwarptest.Pipe()
	s.ended.Go(func() {
		if req, err := cm.Receive(context.Background(), b, s.server.cfg.MPA); err == nil {
			_ = s.server.ServeConn(req)
		}
	})
	p := newTestPeer(s.t, verbs.QPConfig{IRD: 8})
	_, err := cm.Connect(s.t.Context(), p.qp, a, cm.Params{})
	if err != nil {
		p.close()
	}
	return err
}

func TestANewConnectionTakesThePlaceOfTheOneIdleForLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := serve(t, ServerConfig{Handler: g, Connections: 3})
		busy, old, young := s.full(), s.full(), s.full()
		busy.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
		old.alive()
		young.alive()
		synctest.Wait() // the call of busy is in its handler
		if err := s.refused(); err == nil {
			t.Error("a fourth was accepted, though all of the three are at work")
		}
		time.Sleep(fairness.Recent)
		young.alive()
		fourth := s.full()
		fourth.alive()
		if err := old.end(); err == nil {
			t.Error("the oldest was not closed")
		}
		young.alive()
		close(g.leave)
		busy.next()
		for _, p := range []*testPeer{busy, old, young, fourth} {
			p.close()
		}
	})
}

// Connections without a call exclude nobody, whether they complete start-up or not.
func TestSilentConnectionsAreTheFirstToMakePlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, ServerConfig{Connections: 3})
		caller := s.full()
		caller.alive()
		time.Sleep(5 * time.Second)
		silent, ended := s.byHand(1 << 10)
		a, b := iwarptest.BufferedPipe(1 << 10)
		stuck := iwarptest.NewPeer(a)
		starting := s.over(b)
		// RFC 6581 §9: a peer-to-peer stream, which begins with a message of this peer's.
		if _, err := stuck.Initiate(iwarptest.Startup{CRC: true, Enhanced: []byte{0x80, 4, 0x80, 4}}); err != nil {
			t.Fatal(err)
		}
		for _, end := range []<-chan error{ended, starting} {
			next := s.full()
			next.alive()
			defer next.close()
			if err := <-end; !errors.Is(err, fairness.ErrEvicted) {
				t.Errorf("a silent connection ended with %v", err)
			}
		}
		caller.alive()
		caller.close()
		_, _ = silent.Close(), stuck.Close()
	})
}

// fromAddr is a connection that seems to come from an address.
type fromAddr struct {
	*iwarptest.Conn
	addr string
}

func (f fromAddr) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.addr), Port: 700} }

const attacker, honest = "192.0.2.1", "192.0.2.2"

// fullFrom is a full peer at an address, with room for so many octets on their way
// to it.
func (s *serving) fullFrom(addr string, room int) *testPeer {
	s.t.Helper()
	a, b := iwarptest.BufferedPipe(room)
	return s.connectOver(a, fromAddr{b, addr}, &wire.PrivateData{SendSize: 4096, ReceiveSize: 4096}, verbs.QPConfig{IRD: 8, ORD: 8})
}

// Whatever the connections of one address do, those of another are accepted at once and
// stay.
func TestOneAddressShutsNobodyOut(t *testing.T) {
	for name, behave := range map[string]func(p *testPeer){
		"silent": func(*testPeer) {},
		"idle": func(p *testPeer) {
			p.alive()
			time.Sleep(fairness.Recent)
		},
		"at work": func(p *testPeer) { p.send(wire.Header{XID: 1}, callMessage(1, 2, nil)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGate()
				const limit = 4
				s := serve(t, ServerConfig{Handler: g, Connections: limit})
				var peers []*testPeer
				flood := func(n int) {
					for range n {
						if name == "at work" && s.server.places.Len() == limit {
							return
						}
						p := s.fullFrom(attacker, 1<<20)
						behave(p)
						peers = append(peers, p)
						synctest.Wait()
						if n := s.server.places.Len(); n > limit {
							t.Fatalf("there are %d connections", n)
						}
					}
				}
				flood(2 * limit)
				p := s.fullFrom(honest, 1<<20)
				for range 5 {
					p.alive()
					flood(2 * limit)
					time.Sleep(10 * time.Second)
				}
				p.close()
				close(g.leave)
				for _, p := range peers {
					p.close()
				}
			})
		})
	}
}

// Claims: S-6.4.2-1
func TestAConnectionThatIsIdleForTooLongIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := serve(t, ServerConfig{Handler: g, Idle: 10 * time.Second})
		silent, busy, regular := s.full(), s.full(), s.full()
		busy.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
		for range 10 {
			time.Sleep(5 * time.Second)
			regular.alive()
		}
		select {
		case <-silent.over:
		default:
			t.Error("who says nothing is still connected")
		}
		close(g.leave)
		busy.next() // was not idle: a call was in progress
		for _, p := range []*testPeer{silent, busy, regular} {
			p.close()
		}
	})
}

// A peer that stops receiving, or does not answer an RDMA Read, keeps the memory of its
// replies for a limited time.
//
// Claims: P8166-8.1-1 MPA-7.1.2-20
func TestAPeerThatTakesNothingIsLetGo(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(p *testPeer, mem wire.Segment)
	}{
		{"of what is written", func(p *testPeer, mem wire.Segment) {
			p.send(wire.Header{XID: 1, Writes: []wire.WriteChunk{{mem}}}, exchangeMessage(1, "abcd", nil, int(mem.Length)))
		}},
		{"of what is asked for", func(p *testPeer, mem wire.Segment) {
			item := make([]byte, mem.Length)
			p.send(wire.Header{XID: 1, Reads: reads(position, mem)}, without(exchangeMessage(1, "abcd", [][]byte{item}), position, len(item)))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serve(t, ServerConfig{Stall: 10 * time.Second})
				a, b := iwarptest.BufferedPipe(8 << 10)
				p := s.connectOver(a, b, nil, verbs.QPConfig{IRD: 8, ORD: 8})
				p.alive()
				time.Sleep(65 * time.Second) // nothing is awaited
				b.Hold()                     // from here on nothing that the server writes arrives
				began := time.Now()
				c.do(p, p.lend(make([]byte, 64<<10), verbs.RemoteRead|verbs.RemoteWrite))
				err := <-p.over
				if waited := time.Since(began); err == nil || waited < 10*time.Second || waited > 20*time.Second {
					t.Errorf("let go after %v: %v", waited, err)
				}
				b.Resume()
				p.close()
			})
		})
	}
}

func TestASessionEndsAfterItsLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		var events []string
		over := make(chan struct{})
		s := serve(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			reply, err := g.ServeRPC(ctx, r)
			if err != nil { // the connection has ended
				time.Sleep(time.Second)
				events = append(events, "handler")
			}
			return reply, err
		})})
		p, other := s.full(), s.full()
		p.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
		r := <-g.entered
		if r.Network != "rdma" || r.Remote == nil || r.Local == nil || r.Back != nil {
			t.Errorf("got %+v", r)
		}
		session := r.Session
		var ends int
		for range 2 {
			r.SessionEnd(func() {
				events = append(events, "end")
				if ends++; ends == 2 {
					close(over)
				}
			})
		}
		later := r.SessionEnd
		other.send(wire.Header{XID: 1}, callMessage(1, 2, nil))
		if r := <-g.entered; r.Session == session || r.Session == nil {
			t.Error("two connections have one session")
		}
		p.qp.Abort()
		<-over
		if want := []string{"handler", "end", "end"}; !slices.Equal(events, want) {
			t.Errorf("got %v, want %v", events, want)
		}
		ran := false
		later(func() { ran = true })
		if !ran {
			t.Error("what is to be run at the end is not run after it")
		}
		close(g.leave)
		other.next()
		p.close()
		other.close()
	})
}

func TestACallWithoutReplyLeavesNothing(t *testing.T) {
	nettest.CheckLeaks(t)
	handler := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		switch r.Proc {
		case 2:
			return nil, oncrpc.ErrNoReply
		case 3:
			return make([]byte, 24), nil // of XID 0
		case 4:
			return nil, errors.New("some failure")
		}
		e := r.Accept(0)
		return e.Finish()
	})
	p := serve(t, ServerConfig{Handler: handler, Credits: 1}).full()
	for xid := range uint32(3 * receiveSlack) {
		p.send(wire.Header{XID: xid}, callMessage(xid, 2, nil))
		p.alive()
	}
	for _, proc := range []uint32{3, 4} {
		p.send(wire.Header{XID: 9}, callMessage(9, proc, nil))
		if m := p.next(); m.XID != 9 || replyStat(t, m.payload) != oncrpc.SystemErr {
			t.Errorf("procedure %d: got %+v %x", proc, m.Header, m.payload)
		}
	}
}

func TestAServerNeedsAHandler(t *testing.T) {
	rnic := must(verbs.Open(verbs.Config{}))(t)
	defer rnic.Close()
	if _, err := NewServer(rnic, ServerConfig{}); err == nil {
		t.Error("a server without a handler was made")
	}
}
