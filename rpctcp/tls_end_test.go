// The end of connections with TLS, and the next ones.

package rpctcp

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
)

// TestTheEndOfTLSIsAnnounced ends connections from either side.
//
// Claims: T-5.1.1-6
func TestTheEndOfTLSIsAnnounced(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	s := newServer(t, ServerConfig{Handler: echo, TLS: r.forServer(tls.NoClientCert)})
	p, done := serveOne(t, s)
	if _, err := p.secure(r.forClient()); err != nil {
		t.Fatal(err)
	}
	p.send(callOf(1, "args"))
	p.expect(replyOf(1, "args")) // so the server's handshake is over, too
	go s.Shutdown(context.Background())
	// crypto/tls takes an end without an alert for an alert, so look at the record: two
	// octets of it, one of its type, and a tag of 16.
	if rest, err := io.ReadAll(p.Conn); len(rest) != 5+2+1+16 || err != nil {
		t.Errorf("TLS ended with % x, %v, want an alert of its end", rest, err)
	}
	if err := nettest.Await(t, done); err != nil {
		t.Errorf("the server's end is %v", err)
	}
	p.Close()

	s = newServer(t, ServerConfig{Handler: echo, TLS: r.forServer(tls.NoClientCert)})
	ours, theirs := iwarptest.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(context.Background(), theirs) }()
	c := newClient(t, ClientConfig{TLS: r.forClient(), Dial: func(context.Context) (net.Conn, error) { return ours, nil }})
	nettest.Await(t, call(context.Background(), c, "args")).want(t, "args", nil)
	c.Close()
	if err := nettest.Await(t, ended); err != nil {
		t.Errorf("the server sees the client's end as %v", err)
	}
}

// A lingering is a connection with a write that comes back long after its octets have left:
// when the connection is about to end.
type lingering struct {
	net.Conn
	next   atomic.Bool // the next write lingers
	begun  atomic.Bool
	ending chan struct{}
	once   sync.Once
}

func (c *lingering) Write(p []byte) (int, error) {
	if !c.next.CompareAndSwap(true, false) {
		return c.Conn.Write(p)
	}
	c.begun.Store(true)
	n, err := c.Conn.Write(p)
	<-c.ending
	return n, err
}

func (c *lingering) end() {
	if c.begun.Load() {
		c.once.Do(func() { close(c.ending) })
	}
}

func (c *lingering) SetWriteDeadline(at time.Time) error {
	c.end()
	return c.Conn.SetWriteDeadline(at)
}

func (c *lingering) Close() error {
	c.end()
	return c.Conn.Close()
}

// A client may have its reply, and end TLS, before the server's write of it comes back.
func TestTheEndOfTLSIsAnnouncedBehindAWriteThatLingers(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	ours, theirs := iwarptest.Pipe()
	server := &lingering{Conn: theirs, ending: make(chan struct{})}
	s := newServer(t, ServerConfig{TLS: r.forServer(tls.NoClientCert), Handler: oncrpc.HandlerFunc(func(ctx context.Context, call *oncrpc.Request) ([]byte, error) {
		server.next.Store(true)
		return echo.ServeRPC(ctx, call)
	})})
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(context.Background(), server) }()
	p := newPeer(t, ours)
	conn, err := p.secure(r.forClient())
	if err != nil {
		t.Fatal(err)
	}
	p.send(callOf(1, "args"))
	p.expect(replyOf(1, "args"))
	if err := conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(p.Conn); len(rest) != 5+2+1+16 || err != nil {
		t.Errorf("TLS ended with % x, %v, want an alert of its end", rest, err)
	}
	if err := nettest.Await(t, ended); err != nil {
		t.Errorf("the server's end is %v", err)
	}
}

func TestClosingDoesNotWaitForWhoDoesNotTakeTheAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert)})
		ours, theirs := iwarptest.BufferedPipe(16 << 10)
		done := make(chan error, 1)
		go func() { done <- s.ServeConn(context.Background(), theirs) }()
		p := newPeer(t, ours)
		if _, err := p.secure(ourRealm().forClient()); err != nil {
			t.Fatal(err)
		}
		p.send(callOf(1, string(make([]byte, 15<<10)))) // its reply fills the pipe
		synctest.Wait()
		began := time.Now()
		s.Close()
		<-done
		if took := time.Since(began); took > lastGrace {
			t.Errorf("the server took %v to close", took)
		}
		p.Close()
	})
}

// A hasty connection notes how far its deadlines for writes are, once it is told to.
type hasty struct {
	net.Conn
	now     atomic.Bool
	writing chan struct{} // a write that is longer than an alert
	longest atomic.Int64
}

func (c *hasty) Write(p []byte) (int, error) {
	if len(p) > 8<<10 {
		select {
		case c.writing <- struct{}{}:
		default:
		}
	}
	return c.Conn.Write(p)
}

func (c *hasty) SetWriteDeadline(at time.Time) error {
	if c.now.Load() {
		c.longest.Store(max(c.longest.Load(), int64(time.Until(at))))
	}
	return c.Conn.SetWriteDeadline(at)
}

// A reply that nobody takes is being written, which the alert has to wait for. (The time is
// real, because the alert waits for a mutex.)
func TestClosingDoesNotWaitForWhoDoesNotTakeAReply(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert)})
	ours, theirs := iwarptest.BufferedPipe(16 << 10)
	h := &hasty{Conn: theirs, writing: make(chan struct{}, 1)}
	done := make(chan error, 1)
	go func() { done <- s.ServeConn(context.Background(), h) }()
	p := newPeer(t, ours)
	if _, err := p.secure(ourRealm().forClient()); err != nil {
		t.Fatal(err)
	}
	p.send(callOf(1, string(make([]byte, 40<<10))))
	nettest.Await(t, h.writing)
	h.now.Store(true)
	s.Close()
	nettest.Await(t, done)
	if longest := time.Duration(h.longest.Load()); longest > lastGrace {
		t.Errorf("a write may take %v more, want at most %v", longest, lastGrace)
	}
	p.Close()
}

func TestAClientReconnectsWithTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	var ends []*iwarptest.Conn
	s := newServer(t, ServerConfig{Handler: securityOf, TLS: r.forServer(tls.NoClientCert)})
	c := newClient(t, ClientConfig{TLS: r.forClient(), Backoff: 1, Dial: func(context.Context) (net.Conn, error) {
		ours, theirs := iwarptest.Pipe()
		if len(ends) == 1 {
			theirs.ResetAfter(200) // in the handshake
		}
		ends = append(ends, ours)
		go s.ServeConn(context.Background(), theirs)
		return ours, nil
	}})
	nettest.Await(t, call(context.Background(), c, "")).want(t, xdr("tls"), nil)
	ends[0].Reset()
	nettest.Await(t, call(context.Background(), c, "")).want(t, xdr("tls"), nil)
	c.Close()
	if len(ends) < 2 {
		t.Errorf("there were %d connections", len(ends))
	}
}

func TestAConnectionEndsBeforeItsKeysAreWorn(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	for _, worn := range []string{"server", "client"} {
		var executed, connections atomic.Int32
		s := newServer(t, ServerConfig{TLS: r.forServer(tls.NoClientCert), Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			executed.Add(1)
			return echo(ctx, r)
		})})
		dial := serving(s)
		c := newClient(t, ClientConfig{TLS: r.forClient(), Backoff: 1, Dial: func(ctx context.Context) (net.Conn, error) {
			connections.Add(1)
			return dial(ctx)
		}})
		if worn == "server" {
			s.setting.mostRecords = 8
		} else {
			c.setting.mostRecords = 8
		}
		for range 30 {
			nettest.Await(t, call(context.Background(), c, "args")).want(t, "args", nil)
		}
		if n := connections.Load(); n < 4 || n > 12 {
			t.Errorf("the %s's keys are worn: 30 calls took %d connections", worn, n)
		}
		if n := executed.Load(); worn == "client" && n != 30 {
			t.Errorf("the %s's keys are worn: 30 calls were executed %d times", worn, n)
		}
		c.Close()
		s.Close()
	}
}
