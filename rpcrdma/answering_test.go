package rpcrdma

import (
	"context"
	"errors"
	"math"
	"net"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// An answering is a client whose connections go to responders that the test controls; they
// can make mistakes.
type answering struct {
	*calling
	peers chan *testPeer // one for each connection

	mu   sync.Mutex
	lent map[uint32][]uint32 // by XID, the STags that have arrived
}

// both is the private data of such a responder: 4096 octets both ways.
var both = wire.PrivateData{RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 4096}

func newAnswering() *answering {
	return &answering{peers: make(chan *testPeer, 16), lent: make(map[uint32][]uint32)}
}

// answer makes one. Its responders send the private data d, none if it is nil.
func answer(t testing.TB, cfg ClientConfig, d *wire.PrivateData) *answering {
	t.Helper()
	a := newAnswering()
	a.calling = call(t, cfg, func(_, nc *iwarptest.Conn) error {
		a.calls.Go(func() { a.accept(nc, d) })
		return nil
	})
	return a
}

func (a *answering) accept(nc net.Conn, d *wire.PrivateData) {
	req, err := cm.Receive(context.Background(), nc, mpa.Config{})
	if err != nil {
		return
	}
	p := newTestPeer(a.t, verbs.QPConfig{IRD: 8, ORD: 8})
	p.seen = a.see
	params := cm.Params{}
	if d != nil {
		params.PrivateData = d.Append(nil)
	}
	if p.conn, err = req.Accept(context.Background(), p.qp, params); err == nil {
		a.peers <- p
	}
}

// sized has each responder send the next size in its private data.
func (a *answering) sized(size <-chan uint32) func(_, nc *iwarptest.Conn) error {
	return func(_, nc *iwarptest.Conn) error {
		n := <-size
		a.calls.Go(func() { a.accept(nc, &wire.PrivateData{SendSize: n, ReceiveSize: n}) })
		return nil
	}
}

// A result is how a call has ended.
type result struct {
	reply *oncrpc.ClientReply
	err   error
	left  int // STags that were valid still when it had ended
}

// start makes a call in a goroutine of its own.
func (a *answering) start(ctx context.Context, q *oncrpc.ClientCall) <-chan result {
	ended := make(chan result, 1)
	a.calls.Go(func() {
		r, err := a.Call(ctx, q)
		ended <- result{r, err, a.left()}
	})
	return ended
}

// see notes which STags a call has.
func (a *answering) see(m *incoming) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range m.Reads {
		a.lent[m.XID] = append(a.lent[m.XID], s.Handle)
	}
	for _, c := range append(m.Writes, m.Reply) {
		for _, s := range c {
			a.lent[m.XID] = append(a.lent[m.XID], s.Handle)
		}
	}
}

// left is how many STags are valid of calls that have ended.
func (a *answering) left() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for xid, stags := range a.lent {
		a.Client.mu.Lock()
		under := a.xids[xid]
		a.Client.mu.Unlock()
		if under {
			continue
		}
		for _, stag := range stags {
			if _, err := a.rnic.QueryMR(stag >> 8); err == nil {
				n++
			}
		}
	}
	return n
}

// peer waits for a connection.
func (a *answering) peer() *testPeer {
	a.t.Helper()
	return within(a.t, "a connection", a.peers)
}

// within waits for something, for a limited time.
func within[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("no %s in %v", what, patience)
		panic("not reached")
	}
}

// grants answers a call of procedure 0, so that more than one may be outstanding.
func (a *answering) grants(credits uint32) *testPeer {
	a.t.Helper()
	ended := a.start(context.Background(), nullClientCall())
	p := a.peer()
	m := p.next()
	p.send(wire.Header{XID: m.XID, Credits: credits}, exchangeNull(m.XID))
	if r := within(a.t, "reply", ended); r.err != nil {
		a.t.Fatal(r.err)
	}
	return p
}

func nullClientCall() *oncrpc.ClientCall {
	c := exchange.Call(nil)
	c.Proc = 0
	return c
}

// exchangeNull is the reply to procedure 0.
func exchangeNull(xid uint32) []byte {
	b, _ := (&oncrpc.Reply{XID: xid}).Append(nil)
	return b
}

// untouched is h as a reply that has used none of its chunks.
func untouched(h *wire.Header) wire.Header {
	var p payload.ReplyPlan
	if err := p.Plan(h, 0, nil, math.MaxInt); err != nil {
		panic(err)
	}
	return p.Header
}

// write writes b to a segment of the client's, and waits until that is done.
func (p *testPeer) write(s wire.Segment, b []byte) error {
	p.t.Helper()
	copy(p.out[(peerReceives-1)*peerSize:], b)
	return p.transfer(verbs.SendWR{
		Op: verbs.OpWrite, Flags: verbs.Signaled,
		SGL:    []verbs.SGE{p.outMR.SGE((peerReceives-1)*peerSize, len(b))},
		Remote: verbs.Remote{STag: memory.STag(s.Handle), TO: s.Offset},
	})
}

// read reads a segment of the client's.
func (p *testPeer) read(s wire.Segment) ([]byte, error) {
	p.t.Helper()
	b := make([]byte, s.Length+1)
	mr := must(p.pd.Register(b, verbs.LocalWrite))(p.t)
	defer mr.Deallocate()
	err := p.transfer(verbs.SendWR{
		Op: verbs.OpRead, Flags: verbs.Signaled,
		SGL:    []verbs.SGE{mr.SGE(0, int(s.Length))},
		Remote: verbs.Remote{STag: memory.STag(s.Handle), TO: s.Offset},
	})
	return b[:s.Length], err
}

// transfer posts a work request and waits for its end. What was posted before
// it and not signaled has ended then, too.
func (p *testPeer) transfer(wr verbs.SendWR) error {
	p.t.Helper()
	wr.ID = 1
	if err := p.qp.PostSend(wr); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		if err := p.sendCQ.Wait(ctx); err != nil {
			p.t.Fatalf("waiting for a completion: %v", err)
		}
		wc := must(p.sendCQ.PollOne())(p.t)
		if wc.Status != verbs.Success {
			return wc.Status
		}
		if wc.ID == 1 {
			return nil
		}
	}
}

// checkEnded checks how a call has ended, and that it has left nothing.
func checkEnded(t testing.TB, r result, want error) {
	t.Helper()
	if r.left != 0 {
		t.Errorf("%d STags are valid still", r.left)
	}
	switch {
	case want == nil && r.err != nil:
		t.Errorf("the call has ended with %v, want a reply", r.err)
	case want != nil && r.err == nil:
		t.Errorf("the call has ended with a reply, want %v", want)
	case want != nil && r.err.Error() != want.Error() && !errors.Is(r.err, want):
		t.Errorf("the call has ended with %v, want %v", r.err, want)
	}
}
