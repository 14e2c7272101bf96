package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

// forward forwards the call with an XID, and returns the whole reply.
func forward(ctx context.Context, c oncrpc.Caller, xid uint32) <-chan result {
	done := make(chan result, 1)
	go func() {
		r, err := c.Call(ctx, &oncrpc.ClientCall{Call: oncrpc.Call{XID: xid, Prog: 7, Vers: 1, Proc: 1}, Args: [][]byte{[]byte("args")}, Forward: true})
		if err != nil {
			done <- result{err: err}
			return
		}
		message := bytes.Clone(r.Message)
		r.Release()
		done <- result{results: message}
	}()
	return done
}

// testForwarding checks that calls by c, which p gets, keep their XIDs and get
// any reply.
func testForwarding(t *testing.T, c oncrpc.Caller, p *peer) {
	t.Helper()
	first := forward(context.Background(), c, 99)
	p.expect(callOf(99, "args"))
	nettest.Await(t, forward(context.Background(), c, 99)).want(t, "", oncrpc.ErrXIDInUse)
	own := call(context.Background(), c, "args") // whose XID is another
	xid := p.xid()
	refusal := oncrpc.ReplyTo(99, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail})
	refusal.Verf = oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS, Body: []byte("checksum")}
	b, err := refusal.Append(nil)
	if err != nil {
		t.Fatal(err)
	}
	p.send(b)
	nettest.Await(t, first).want(t, string(b), nil)
	p.send(replyOf(xid, "results."))
	nettest.Await(t, own).want(t, "results.", nil)

	// The XID is free again.
	again := forward(context.Background(), c, 99)
	p.expect(callOf(99, "args"))
	p.send(replyOf(99, "results."))
	nettest.Await(t, again).want(t, string(replyOf(99, "results.")), nil)
}

func TestForwardedCallsKeepTheirXIDsAndGetAnyReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial})
		connected := make(chan error, 1)
		go func() { connected <- c.Connect(context.Background()) }()
		p := <-d.peers
		if err := <-connected; err != nil {
			t.Fatal(err)
		}
		testForwarding(t, c, p)
		c.Close()
		p.Close()
	})
}

func TestCallsAreForwardedBackAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backs := make(chan oncrpc.Caller, 1)
		s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			backs <- r.Back
			return nil, oncrpc.ErrNoReply
		})})
		p, done := serveOne(t, s)
		p.send(callOf(99, ""))
		testForwarding(t, <-backs, p)
		p.Close()
		<-done
	})
}

// With KeepPort the connections of a client come from one port, which the next
// client can be told.
func TestConnectionsComeFromOnePort(t *testing.T) {
	nettest.CheckLeaks(t)
	ln := nettest.Listen(t, "tcp4")
	ports := make(chan int, 10)
	accept := func(c *Client) *net.TCPConn {
		t.Helper()
		connected := make(chan error, 1)
		go func() { connected <- c.Connect(context.Background()) }()
		nc, err := ln.AcceptTCP()
		if err := errors.Join(err, <-connected); err != nil {
			t.Fatal(err)
		}
		ports <- nc.RemoteAddr().(*net.TCPAddr).Port
		return nc
	}
	ended := func(nc *net.TCPConn) {
		nc.Read(make([]byte, 1))
		nc.Close()
	}
	c := newClient(t, ClientConfig{Address: ln.Addr().String(), KeepPort: true})
	if got := c.LocalPort(); got != 0 {
		t.Errorf("port %d before there was any connection", got)
	}
	nc := accept(c)
	nc.SetLinger(0)
	nc.Close() // as a server that ends at once
	c.links.Wait()
	nc = accept(c)
	c.Close()
	ended(nc)

	next := newClient(t, ClientConfig{Address: ln.Addr().String(), KeepPort: true, LocalPort: c.LocalPort()})
	nc = accept(next)
	first := nettest.Await(t, ports)
	if second, third := nettest.Await(t, ports), nettest.Await(t, ports); first != second || first != third || first != c.LocalPort() || first != next.LocalPort() {
		t.Errorf("connections from ports %d, %d and %d, the clients say %d and %d", first, second, third, c.LocalPort(), next.LocalPort())
	}

	// One that is in use is no obstacle.
	other := newClient(t, ClientConfig{Address: ln.Addr().String(), KeepPort: true, LocalPort: first})
	third := accept(other)
	if got := nettest.Await(t, ports); got == first || got != other.LocalPort() {
		t.Errorf("a connection from port %d, which is in use, and the client says %d", got, other.LocalPort())
	}
	for c, nc := range map[*Client]*net.TCPConn{next: nc, other: third} {
		c.Close()
		ended(nc)
	}
}
