package rpcmodel_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A world is a server, its clients and its raw requesters.
type world struct {
	t      *testing.T
	r      *rand.Rand
	rnic   *verbs.RNIC // the server's
	server *rpcrdma.Server
	wg     sync.WaitGroup // connections

	clients []*client
	raws    []*raw
	counts  map[string]int
	step    int
}

// A client is an rpcrdma.Client, and the connection that it has.
type client struct {
	*rpcrdma.Client
	bound bool // it has the binding
	mu    sync.Mutex
	conn  *iwarptest.Conn
}

// rfc5666 is everything that RFC 5666 has beyond RFC 8166.
var rfc5666 = wire.Rules{MSGP: true, ReadRead: true}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, r: rand.New(rand.NewPCG(seed, 5)), counts: make(map[string]int)}
	var err error
	if w.rnic, err = verbs.Open(verbs.Config{}); err != nil {
		t.Fatal(err)
	}
	cfg := rpcrdma.ServerConfig{
		Handler:  oncrpc.Mux{{Prog: program, Low: version, High: version, Handler: oncrpc.HandlerFunc(serve)}},
		Bindings: bindings,
		Credits:  1 + w.r.IntN(16), SendSize: w.size(), ReceiveSize: w.size(), Reads: 1 + w.r.IntN(16),
		NoRemoteInvalidation: w.r.IntN(3) == 0,
		Rules:                rfc5666,
		Configure:            &rpcrdma.Configurator{Align: uint32(w.r.IntN(3) * 64), Allow: func(*oncrpc.Call) bool { return true }},
		ReadReplies:          rpcrdma.ReadReplies{Enabled: true, Replies: 1 + w.r.IntN(4)},
	}
	if w.server, err = rpcrdma.NewServer(w.rnic, cfg); err != nil {
		t.Fatal(err)
	}
	for i := range 2 + w.r.IntN(3) {
		w.clients = append(w.clients, w.newClient(i))
	}
	for range 2 {
		w.raws = append(w.raws, w.newRaw())
	}
	return w
}

// size is a message size.
func (w *world) size() int { return 1024 << w.r.IntN(4) }

func (w *world) newClient(i int) *client {
	c := &client{bound: w.r.IntN(4) > 0}
	cfg := rpcrdma.ClientConfig{
		Credits: 1 + w.r.IntN(8), SendSize: w.size(), ReceiveSize: w.size(), Reads: 1 + w.r.IntN(16),
		NoRemoteInvalidation: w.r.IntN(3) == 0, Configure: w.r.IntN(2) == 0,
		Timeout: time.Hour, Backoff: time.Millisecond,
		Dial: func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
			nc := w.connect()
			c.mu.Lock()
			c.conn = nc
			c.mu.Unlock()
			return cm.Connect(ctx, qp, nc, p)
		},
	}
	if i%2 == 1 {
		cfg.Rules = rfc5666
	}
	if c.bound {
		cfg.Bindings = bindings
	}
	var err error
	if c.Client, err = rpcrdma.NewClient(cfg); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// connect makes a connection to the server.
func (w *world) connect() *iwarptest.Conn {
	a, b := iwarptest.BufferedPipe(1 << 18)
	w.wg.Go(func() {
		if req, err := cm.Receive(context.Background(), b, mpa.Config{}); err == nil {
			_ = w.server.ServeConn(req)
		}
	})
	return a
}

// act has a client, or several, make calls, and waits for their ends.
func (w *world) act() {
	var calls sync.WaitGroup
	for range 1 + w.r.IntN(3) {
		c := w.clients[w.r.IntN(len(w.clients))]
		breaks := w.r.IntN(8) == 0
		for range 1 + w.r.IntN(12) {
			// Everything random is chosen here, in order.
			q := ask(w.r, 20000)
			call := w.call(c, q)
			var after time.Duration
			if w.r.IntN(10) == 0 {
				after = time.Duration(1 + w.r.IntN(3)) // a nanosecond: when nothing else can happen
			}
			calls.Go(func() { w.make(c, q, call, after) })
		}
		if breaks {
			w.cut(c)
		}
	}
	w.raws[w.r.IntN(len(w.raws))].act()
	calls.Wait()
}

// cut ends the connection of c, some octets from now.
func (w *world) cut(c *client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return
	}
	at := c.conn.Written() + uint64(w.r.IntN(20000))
	if w.r.IntN(2) == 0 {
		c.conn.FinAfter(at)
	} else {
		c.conn.ResetAfter(at)
	}
	w.counts["cut"]++
}

// call makes a call of a question, in one of the ways that there are.
func (w *world) call(c *client, q *question) *oncrpc.ClientCall {
	call := &oncrpc.ClientCall{Call: oncrpc.Call{Prog: program, Vers: version, Proc: proc}, Args: cut(w.r, q.args())}
	reply := 24 + len(q.results())
	if w.r.IntN(3) > 0 {
		for _, n := range q.wanted[:w.r.IntN(len(q.wanted)+1)] {
			call.Sinks = append(call.Sinks, make([]byte, max(0, n+w.r.IntN(5)-1)))
		}
	}
	switch {
	case !c.bound:
		call.MaxReply = reply + w.r.IntN(100)
	case w.r.IntN(4) == 0 && len(call.Sinks) == 0:
		call.MaxReply = reply
	}
	return call
}

// make makes a call, gives it up after a time if there is one, and holds its
// reply against the model.
func (w *world) make(c *client, q *question, call *oncrpc.ClientCall, after time.Duration) {
	ctx := context.Background()
	if after > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, after)
		defer cancel()
	}
	r, err := c.Call(ctx, call)
	if err != nil {
		if after == 0 || !errors.Is(err, context.DeadlineExceeded) {
			w.t.Errorf("step %d: %v", w.step, err)
		}
		return
	}
	defer r.Release()
	if got, want := whole(r, call.Sinks), q.results(); !bytes.Equal(got, want) {
		w.t.Errorf("step %d: results of %d octets, %d placed, are not the %d octets of the model", w.step, len(got), len(r.Placed), len(want))
	}
}

// whole are the results with what is in the sinks.
func whole(r *oncrpc.ClientReply, sinks [][]byte) (b []byte) {
	at := len(r.Message) - len(r.Results)
	for _, p := range r.Placed {
		if p.Length >= 0 {
			b = append(append(b, r.Message[at:p.At]...), sinks[p.Sink][:p.Length]...)
			b = append(b, make([]byte, wire.Pad(uint64(p.Length)))...)
			at = p.At
		}
	}
	return append(b, r.Message[at:]...)
}

// close ends everything, and checks that nothing is left.
func (w *world) close() {
	for _, c := range w.clients {
		s := c.Stats()
		w.counts["calls"] += int(s.Calls)
		w.counts["replies"] += int(s.Replies)
		w.counts["made again"] += int(s.Repeated)
		w.counts["connections"] += int(s.Connections)
		if err := c.Close(); err != nil { // which frees its RNIC, or fails
			w.t.Error(err)
		}
	}
	for _, r := range w.raws {
		r.close()
	}
	if err := w.server.Close(); err != nil {
		w.t.Error(err)
	}
	w.wg.Wait()
	if u := w.rnic.Usage(); u != (verbs.Usage{}) {
		w.t.Errorf("the server has left %+v", u)
	}
	if err := w.rnic.Close(); err != nil {
		w.t.Error(err)
	}
}
