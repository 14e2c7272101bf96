package rpcrdma

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A calling is a client under test. At the end it must have freed everything.
type calling struct {
	*Client
	t     testing.TB
	rnic  *verbs.RNIC
	calls sync.WaitGroup
}

// call makes a client. It has end a of each connection, and dial gets end b.
func call(t testing.TB, cfg ClientConfig, dial func(a, b *iwarptest.Conn) error) *calling {
	t.Helper()
	c := &calling{t: t, rnic: must(verbs.Open(verbs.Config{}))(t)}
	cfg.RNIC = c.rnic
	cfg.Backoff = cmp.Or(cfg.Backoff, time.Nanosecond)
	if cfg.Bindings == nil {
		cfg.Bindings = exchange.Bindings
	}
	cfg.Dial = func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
		a, b := iwarptest.BufferedPipe(1 << 20)
		if err := dial(a, b); err != nil {
			return nil, err
		}
		return cm.Connect(ctx, qp, a, p)
	}
	c.Client = must(NewClient(cfg))(t)
	t.Cleanup(c.close)
	return c
}

// callServer makes a client of s.
func callServer(s *serving, cfg ClientConfig) *calling {
	return call(s.t, cfg, func(_, b *iwarptest.Conn) error {
		s.take(b)
		return nil
	})
}

// take serves a connection.
func (s *serving) take(nc net.Conn) {
	s.ended.Go(func() {
		if req, err := cm.Receive(context.Background(), nc, mpa.Config{}); err == nil {
			_ = s.server.ServeConn(req)
		}
	})
}

// close ends the client, and checks that nothing is left.
func (c *calling) close() {
	if err := c.Client.Close(); err != nil {
		c.t.Errorf("closing the client: %v", err)
	}
	c.calls.Wait()
	if u := c.rnic.Usage(); u != (verbs.Usage{}) {
		c.t.Errorf("the client has left %+v", u)
	}
	_ = c.rnic.Close()
}

// whole puts a reply together with what is in the sinks.
func whole(r *oncrpc.ClientReply, sinks [][]byte) []byte {
	var b []byte
	at := 0
	for _, p := range r.Placed {
		if p.Length < 0 {
			continue
		}
		b = append(b, r.Message[at:p.At]...)
		b = append(b, sinks[p.Sink][:p.Length]...)
		b = append(b, make([]byte, wire.Pad(uint64(p.Length)))...)
		at = p.At
	}
	return append(b, r.Message[at:]...)
}

// exchange makes a call of EXCHANGE and checks the reply.
func (c *calling) exchange(tag string, items [][]byte, wanted ...int) *oncrpc.ClientReply {
	c.t.Helper()
	q := exchange.Call(exchange.Args(tag, items, wanted...))
	for _, n := range wanted {
		q.Sinks = append(q.Sinks, make([]byte, n))
	}
	r, err := c.Call(c.t.Context(), q)
	if err != nil {
		c.t.Fatal(err)
	}
	if got, want := whole(r, q.Sinks), exchange.Reply(r.XID, tag, exchangeResults(items, wanted...)...); !bytes.Equal(got, want) {
		c.t.Fatalf("reply\n% x\nwant\n% x", got, want)
	}
	return r
}

// exchangeResults are what EXCHANGE returns.
func exchangeResults(items [][]byte, wanted ...int) (results [][]byte) {
	for _, n := range wanted {
		results = append(results, exchangeResult(items, n))
	}
	return results
}

// Claims: P-3.4-7 P-3.4-16 P-7-3
func TestClientMakesCallsOfAllKinds(t *testing.T) {
	nettest.CheckLeaks(t)
	c := callServer(serve(t, ServerConfig{}), ClientConfig{})
	big := exchange.Pattern(1, 100001)
	c.exchange("", nil).Release()
	c.exchange("short", [][]byte{[]byte("hello")}, 5).Release()
	c.exchange("reduced", [][]byte{big}).Release()
	c.exchange("placed", [][]byte{big[:7]}, 4000, 0, 4001).Release()
	c.exchange("both", [][]byte{big, big[:3], big[:5000]}, 0, 50001, 3).Release()
	if s := c.Stats(); s.Calls != 5 || s.Replies != 5 || s.Connections != 1 || s.Repeated != 0 || s.Dropped != 0 {
		t.Errorf("%+v", s)
	}
}

// A result goes to the caller's memory, as long as the reply says, or stays in the reply.
//
// Claims: P-3.5-6 P-3.6-3
func TestAResultIsTheSameWithAndWithoutMemoryForIt(t *testing.T) {
	nettest.CheckLeaks(t)
	c := callServer(serve(t, ServerConfig{}), ClientConfig{})
	const n = 50001
	want := exchangeResult(nil, n)
	args := exchange.Args("abcd", nil, n)

	q := exchange.Call(args)
	r := must(c.Call(t.Context(), q))(t)
	if reply := exchange.Reply(r.XID, "abcd", want); len(r.Placed) > 0 || !bytes.Equal(r.Message, reply) {
		t.Errorf("without memory: %d results are placed, and %d octets in the reply, want none and %d", len(r.Placed), len(r.Message), len(reply))
	}
	r.Release()

	q = exchange.Call(args)
	q.Sinks = [][]byte{make([]byte, n+1000)}
	r = must(c.Call(t.Context(), q))(t)
	if len(r.Placed) != 1 || r.Placed[0].Length != n || len(r.Message) >= n {
		t.Fatalf("with memory: %+v are placed, %d octets in the reply, want %d octets in the memory", r.Placed, len(r.Message), n)
	}
	if !bytes.Equal(q.Sinks[0][:n], want) {
		t.Error("with memory: what is there is not the result")
	}
	r.Release()
}

var errNobody = errors.New("nobody is there")

func TestAFirstConnectionThatFailsEndsTheCall(t *testing.T) {
	nettest.CheckLeaks(t)
	c := call(t, ClientConfig{Attempts: 1}, func(a, b *iwarptest.Conn) error { return errNobody })
	if _, err := c.Call(t.Context(), exchange.Call(exchange.Args("", nil))); !errors.Is(err, errNobody) {
		t.Errorf("got %v, want %v", err, errNobody)
	}
}

// Wherever a connection ends, its calls are sent again over the next and succeed. Nothing
// of them is left, which calling.close and serving.close check.
//
// Claims: P8166-8.1-1
func TestAConnectionCutAnywhereCostsNoCall(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{})
	// exchange has calls of all kinds, with the first connection changed.
	exchange := func(change func(a, b *iwarptest.Conn)) (sent, received uint64) {
		var first, second *iwarptest.Conn
		c := call(t, ClientConfig{SendSize: 1024, ReceiveSize: 1024}, func(a, b *iwarptest.Conn) error {
			if first == nil {
				first, second = a, b
				change(a, b)
			}
			s.take(b)
			return nil
		})
		defer c.close()
		c.exchange("short", nil, 4).Release()
		c.exchange("both", [][]byte{exchange.Pattern(1, 1001)}, 1003).Release()
		q := exchange.Call([][]byte{bytes.Join(exchange.Args("long", [][]byte{exchange.Pattern(1, 1001)}, 1001), nil)})
		r, err := c.Call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if want := exchange.Reply(r.XID, "long", exchangeResult([][]byte{exchange.Pattern(1, 1001)}, 1001)); !bytes.Equal(r.Message, want) {
			t.Errorf("reply % x, want % x", r.Message, want)
		}
		r.Release()
		return first.Written(), second.Written()
	}
	sent, received := exchange(func(a, b *iwarptest.Conn) {})
	step := uint64(5) // 1 takes half a minute
	for n := uint64(0); n < max(sent, received); n += step {
		if n < sent {
			exchange(func(a, _ *iwarptest.Conn) { a.ResetAfter(n) })
		}
		if n < received {
			exchange(func(_, b *iwarptest.Conn) { b.FinAfter(n) })
		}
	}
}
