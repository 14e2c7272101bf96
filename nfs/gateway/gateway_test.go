package gateway

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Calls and replies pass unchanged, also replies with an error, and programs and credentials
// that the gateway does not know.
func TestMessagesPassUnchanged(t *testing.T) {
	r := newRig(t, Config{})
	front := dial(t, r.front)
	var behind *rawConn
	gss := words(6, 12, 1, 2, 3) // a flavor, and a body of 12 octets
	for name, tt := range map[string]struct{ call, reply []byte }{
		"NULL":                    {call(1, 0), reply(1)},
		"success":                 {call(0xfffffffe, 6, 8, 1, 2, 0, 0, 5), reply(0xfffffffe, 1, 2, 3)},
		"NFS version 4":           {append(words(3, 0, 2, nfs.Program, 4, 1), words(0, 0, 0, 0, 0, 1, 0)...), reply(3, 0, 0, 0)},
		"another program":         {words(4, 0, 2, 100227, 3, 1, 0, 0, 0, 0, 7), reply(4, 7)},
		"flavors not known":       {append(append(words(5, 0, 2, nfs.Program, 3, 1), gss...), append(words(4711, 4, 9), 1, 2, 3, 4)...), append(append(words(5, 1, 0), gss...), words(0, 9)...)},
		"no such program":         {call(6, 1), words(6, 1, 0, 0, 0, 1)},
		"versions 2 to 4":         {call(7, 1), words(7, 1, 0, 0, 0, 2, 2, 4)},
		"no such procedure":       {call(8, 99), words(8, 1, 0, 0, 0, 3)},
		"failure with a verifier": {call(9, 1), append(append(words(9, 1, 0), gss...), words(5)...)},
		"a status not known":      {call(10, 1), words(10, 1, 0, 0, 0, 77)},
		"credentials refused":     {call(11, 1), words(11, 1, 1, 1, 13)},
		"a large payload":         {append(call(12, 7), make([]byte, 1<<20)...), append(reply(12), bytes.Repeat([]byte{1, 2, 3, 4}, 1<<18)...)},
	} {
		front.send(tt.call)
		if behind == nil {
			behind = accept(t, r.behind)
		}
		if got := behind.receive(); !bytes.Equal(got, tt.call) {
			t.Errorf("%s: the call arrives as %x, want %x", name, head(got), head(tt.call))
		}
		behind.send(tt.reply)
		if got := front.receive(); !bytes.Equal(got, tt.reply) {
			t.Errorf("%s: the reply arrives as %x, want %x", name, head(got), head(tt.reply))
		}
	}
}

func head(b []byte) []byte { return b[:min(len(b), 100)] }

// Each connection in front has one behind, which begins with the first call and ends with the
// connection in front.
func TestEachConnectionHasOneBehind(t *testing.T) {
	r := newRig(t, Config{})
	var fronts, behinds []*rawConn
	for i := range uint32(3) {
		f := dial(t, r.front)
		f.send(call(7, i)) // XIDs are each client's own
		b := accept(t, r.behind)
		if got := b.receive(); !bytes.Equal(got, call(7, i)) {
			t.Fatalf("connection %d: call %x", i, got)
		}
		fronts, behinds = append(fronts, f), append(behinds, b)
	}
	for i := range uint32(3) {
		behinds[2-i].send(reply(7, 2-i))
	}
	for i, f := range fronts {
		if got := f.receive(); !bytes.Equal(got, reply(7, uint32(i))) {
			t.Errorf("connection %d: reply %x", i, got)
		}
	}
	fronts[1].nc.Close()
	behinds[1].ended()
	fronts[0].send(call(8, 1))
	if got := behinds[0].receive(); xidOf(got) != 8 {
		t.Errorf("call %x over another connection", got)
	}
}

// The connections behind are bounded, also while those in front come and go. Another one waits
// until one has been closed.
func TestConnectionsBehindAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open, most atomic.Int32
		g, err := New(Config{Connections: 3, Backend: Backend{Open: func(Front) (oncrpc.Caller, error) {
			most.Store(max(most.Load(), open.Add(1)))
			return &slowCaller{&open}, nil
		}}})
		if err != nil {
			t.Fatal(err)
		}
		var fronts sync.WaitGroup
		for i := range 20 {
			fronts.Go(func() {
				var end func()
				r := &oncrpc.Request{Call: oncrpc.Call{Prog: nfs.Program, Vers: 3}, Session: i, Remote: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(i))), SessionEnd: func(f func()) { end = f }}
				if _, err := g.ServeRPC(t.Context(), r); err != nil {
					t.Error(err)
				}
				end()
			})
		}
		fronts.Wait()
		if n := most.Load(); n != 3 || open.Load() != 0 {
			t.Errorf("there were %d connections behind, and %d are left", n, open.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 {
			g.slots <- struct{}{}
		}
		r := &oncrpc.Request{Session: "gone", Remote: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("192.0.2.1:1")), SessionEnd: func(func()) {}}
		if _, err := g.ServeRPC(ctx, r); !errors.Is(err, oncrpc.ErrNoReply) {
			t.Errorf("a call whose connection has gone: %v", err)
		}
		g.Close()
	})
}

// A slowCaller closes slowly.
type slowCaller struct{ open *atomic.Int32 }

func (c *slowCaller) Call(_ context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	return &oncrpc.ClientReply{Message: reply(call.XID)}, nil
}

func (c *slowCaller) Close() error {
	time.Sleep(time.Second)
	c.open.Add(-1)
	return nil
}

// Clients do not notice a restart of the server. Calls without a reply are sent again, with the
// same XID and from the same port, by which the server recognizes them.
func TestARestartBehindIsNotSeenInFront(t *testing.T) {
	r := newRig(t, Config{})
	front := dial(t, r.front)
	front.send(call(1, 8))
	front.send(call(2, 12))
	b := accept(t, r.behind)
	calls := [][]byte{b.receive(), b.receive()}
	port := portOf(b.nc.RemoteAddr())
	b.nc.(*net.TCPConn).SetLinger(0)
	b.nc.Close()

	b = accept(t, r.behind)
	if got := portOf(b.nc.RemoteAddr()); got != port {
		t.Errorf("the next connection comes from port %d, want %d as before", got, port)
	}
	for range calls {
		got := b.receive()
		if !slices.ContainsFunc(calls, func(c []byte) bool { return bytes.Equal(c, got) }) {
			t.Errorf("call %x sent again, want one of %x", got, calls)
		}
		b.send(reply(xidOf(got), xidOf(got)))
	}
	for range calls {
		if got := front.receive(); !bytes.Equal(got, reply(xidOf(got), xidOf(got))) {
			t.Errorf("reply %x", got)
		}
	}
}

// A client that reconnects and retransmits its calls looks to the server like the same client:
// the port behind is the same.
func TestRepeatedCallsComeFromTheSamePort(t *testing.T) {
	for name, answered := range map[string]bool{"not answered": false, "the reply was lost": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Config{})
			front := dial(t, r.front)
			front.send(call(1, 1))
			b := accept(t, r.behind)
			b.send(reply(xidOf(b.receive())))
			front.receive()
			front.send(call(2, 12))
			first := b.receive()
			port := portOf(b.nc.RemoteAddr())
			if answered {
				b.send(reply(2))
				front.receive()
			}
			front.nc.Close()
			b.ended()

			front = dial(t, r.front)
			front.send(call(2, 12))
			b = accept(t, r.behind)
			if got := b.receive(); !bytes.Equal(got, first) || portOf(b.nc.RemoteAddr()) != port {
				t.Errorf("call %x from port %d, want %x from %d", got, portOf(b.nc.RemoteAddr()), first, port)
			}

			// Another client's connection has its own port.
			other := dial(t, r.front)
			other.send(call(2, 13))
			if b := accept(t, r.behind); portOf(b.nc.RemoteAddr()) == port {
				t.Errorf("another connection comes from port %d, too", port)
			}
		})
	}
}

// The same holds if the old connection seems to exist still, as after a cable was cut. Its
// calls get no reply over it.
func TestAConnectionWhoseCallsAreRepeatedHasEnded(t *testing.T) {
	r := newRig(t, Config{})
	old := dial(t, r.front)
	old.send(call(1, 12))
	b := accept(t, r.behind)
	b.receive()
	port := portOf(b.nc.RemoteAddr())

	front := dial(t, r.front)
	front.send(call(1, 12))
	b.ended()
	b = accept(t, r.behind)
	if got := portOf(b.nc.RemoteAddr()); got != port {
		t.Errorf("the repeated call comes from port %d, want %d as before", got, port)
	}
	b.send(reply(xidOf(b.receive())))
	if got := front.receive(); xidOf(got) != 1 {
		t.Errorf("reply %x", got)
	}

	// If its client still uses it, it gets a new connection behind.
	old.send(call(2, 1))
	b = accept(t, r.behind)
	b.send(reply(xidOf(b.receive())))
	if got := old.receive(); xidOf(got) != 2 {
		t.Errorf("reply %x over the old connection, want to the second call only", got)
	}
}

// A call that is retransmitted while it is in progress is sent to the server once, and answered
// once.
func TestACallUnderWayIsNotPassedOnAgain(t *testing.T) {
	behind := nettest.Listen(t, "tcp4")
	backend := TCP(TCPConfig{Address: behind.Addr().String()})
	open, repeated := backend.Open, make(chan struct{})
	backend.Open = func(f Front) (oncrpc.Caller, error) {
		c, err := open(f)
		return repeats{c, repeated}, err
	}
	r := newRigBefore(t, behind, Config{Backend: backend})
	front := dial(t, r.front)
	front.send(call(1, 12))
	b := accept(t, r.behind)
	b.receive()
	front.send(call(1, 12))
	front.send(call(2, 1))
	if got := b.receive(); xidOf(got) != 2 {
		t.Fatalf("call %d arrives, want that it does not once more", xidOf(got))
	}
	select { // once the call is answered, a repetition is a call like any other
	case <-repeated:
	case <-time.After(30 * time.Second):
		t.Fatal("the repeated call is not refused")
	}
	b.send(reply(1, 1))
	b.send(reply(2, 2))
	got := []uint32{xidOf(front.receive()), xidOf(front.receive())}
	slices.Sort(got)
	if !slices.Equal(got, []uint32{1, 2}) {
		t.Errorf("replies to %v", got)
	}
	front.send(call(3, 1))
	b.send(reply(xidOf(b.receive())))
	if got := xidOf(front.receive()); got != 3 {
		t.Errorf("a further reply, to %d", got)
	}
}

// A repeats is a caller that reports when it has refused a retransmission of a call in
// progress.
type repeats struct {
	oncrpc.Caller
	refused chan<- struct{}
}

func (r repeats) Call(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	reply, err := r.Caller.Call(ctx, c)
	if errors.Is(err, oncrpc.ErrXIDInUse) {
		r.refused <- struct{}{}
	}
	return reply, err
}

// Calls of the server over the connection behind go to the client over the one in front. On
// each, XIDs are those of the side that calls.
func TestCallbacksGoTheOtherWay(t *testing.T) {
	r := newRig(t, Config{})
	front := dial(t, r.front)
	front.send(call(1, 1))
	b := accept(t, r.behind)
	b.receive()
	callback := words(1, 0, 2, 0x40000000, 1, 1, 0, 0, 0, 0, 4, 5, 6)
	b.send(callback) // its XID is that of the client's call
	if got := front.receive(); !bytes.Equal(got, callback) {
		t.Errorf("the client is called by %x, want %x", got, callback)
	}
	front.send(reply(1, 7, 8))
	if got := b.receive(); !bytes.Equal(got, reply(1, 7, 8)) {
		t.Errorf("the server is answered %x", got)
	}
	b.send(reply(1, 9))
	if got := front.receive(); !bytes.Equal(got, reply(1, 9)) {
		t.Errorf("the client is answered %x", got)
	}
}

// A callback over a connection without calls in that direction is refused.
func TestCallbacksToNobodyAreRefused(t *testing.T) {
	var s session
	_, err := s.reverse(context.Background(), &oncrpc.Request{})
	if !errors.Is(err, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}) {
		t.Errorf("error %v", err)
	}
}

// A handlerCaller is a backend in memory.
type handlerCaller func(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error)

func (f handlerCaller) Call(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	return f(ctx, c)
}
func (f handlerCaller) Close() error { return nil }

func backend(f handlerCaller) Backend {
	return Backend{Open: func(Front) (oncrpc.Caller, error) { return f, nil }}
}

// request is a call as a transport hands it to a handler.
func request(t *testing.T, message []byte) *oncrpc.Request {
	r := &oncrpc.Request{Message: message, Network: "tcp", Session: t, SessionEnd: func(func()) {}}
	at, err := r.Parse(message)
	if err != nil {
		t.Fatal(err)
	}
	r.Args = message[at:]
	return r
}

// While the server is unreachable, calls wait, up to Config.Wait.
func TestCallsWaitForTheServerAsLongAsTheyMay(t *testing.T) {
	away := handlerCaller(func(ctx context.Context, _ *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	for name, tt := range map[string]struct{ limit, connection, want time.Duration }{
		"the connection's time": {0, 40 * time.Hour, 40 * time.Hour},
		"a limit":               {time.Minute, 40 * time.Hour, time.Minute},
		"a longer limit":        {time.Hour, time.Minute, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			g, err := New(Config{Backend: backend(away), Wait: tt.limit})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), tt.connection)
			defer cancel()
			start := time.Now()
			_, err = g.ServeRPC(ctx, request(t, call(1, 1)))
			if waited := time.Since(start); waited != tt.want || !errors.Is(err, oncrpc.ErrNoReply) {
				t.Errorf("%s: %v after %v, want no reply after %v", name, err, waited, tt.want)
			}
		})
	}
}

// An error of the caller becomes a status of RPC.
func TestFailuresAreToldAsRPCTellsThem(t *testing.T) {
	malformed := &wire.Error{Fault: wire.FaultStream, Detail: "too short"}
	for name, tt := range map[string]struct {
		err  error
		args []uint32
		want error
	}{
		"the XID is under way":        {oncrpc.ErrXIDInUse, []uint32{4, 1}, oncrpc.ErrNoReply},
		"arguments of something else": {malformed, []uint32{4}, &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs}},
		"a reply of something else":   {malformed, []uint32{4, 1}, malformed},
		"an RDMA_ERROR":               {&wire.RemoteError{Code: wire.ErrChunk}, []uint32{4, 1}, &wire.RemoteError{Code: wire.ErrChunk}},
	} {
		b := backend(func(context.Context, *oncrpc.ClientCall) (*oncrpc.ClientReply, error) { return nil, tt.err })
		b.Bindings = binding.NFS()
		g, err := New(Config{Backend: b})
		if err != nil {
			t.Fatal(err)
		}
		_, err = g.ServeRPC(t.Context(), request(t, call(1, 1, tt.args...)))
		got, want := oncrpc.ReplyTo(1, err), oncrpc.ReplyTo(1, tt.want)
		if errors.Is(tt.want, oncrpc.ErrNoReply) != errors.Is(err, oncrpc.ErrNoReply) || got.Accept != want.Accept {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
}

// A client that probes for TLS is refused, and continues without. The server does not get the
// probe, because it might agree.
func TestTLSIsNotPassedOn(t *testing.T) {
	r := newRig(t, Config{})
	front := dial(t, r.front)
	front.send(words(1, 0, 2, nfs.Program, 3, 0, 7, 0, 0, 0))
	if got, want := front.receive(), words(1, 1, 1, 1, 1); !bytes.Equal(got, want) {
		t.Errorf("reply %x, want %x: AUTH_BADCRED", got, want)
	}
	front.send(call(2, 1))
	b := accept(t, r.behind)
	if got := b.receive(); !bytes.Equal(got, call(2, 1)) {
		t.Errorf("behind arrives %x, want the next call", got)
	}
}

// Calls without a connection have none behind, and a closed gateway does not reply.
func TestAGatewayNeedsConnections(t *testing.T) {
	g, err := New(Config{Backend: backend(nil)})
	if err != nil {
		t.Fatal(err)
	}
	r := request(t, call(1, 1))
	r.SessionEnd = nil
	if _, err := g.ServeRPC(t.Context(), r); !errors.Is(err, errNoSession) {
		t.Errorf("a datagram: %v", err)
	}
	g.Close()
	if _, err := g.ServeRPC(t.Context(), request(t, call(1, 1))); !errors.Is(err, oncrpc.ErrNoReply) {
		t.Errorf("closed: %v, want no reply", err)
	}
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "Backend") {
		t.Errorf("without a backend: %v", err)
	}
}
