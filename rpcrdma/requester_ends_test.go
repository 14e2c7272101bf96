package rpcrdma

import (
	"bytes"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A responder may write to memory that its reply reports as unused, and more than it
// reports.
//
// Claims: P-3.4-25 P-3.4-26 P-3.4-27 P8166-4.3.2.2-4 P8166-4.3.3-3
func TestWhatIsLeftInChunksIsNoResult(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	q := everything()
	ended := a.start(t.Context(), q)
	p := a.peer()
	m := p.next()
	h := untouched(&m.Header)
	other := exchange.Reply(m.XID, "not this one")
	for s, b := range map[wire.Segment][]byte{m.Writes[0][0]: exchange.Pattern(1, 5000), m.Writes[1][0]: exchange.Pattern(2, 39), m.Reply[0]: other} {
		if err := p.write(s, b); err != nil {
			t.Fatal(err)
		}
	}
	h.Writes[0][0].Length = 8 // of 5000 that were written
	reply := without(exchange.Reply(m.XID, "abcd", exchange.Pattern(1, 8), nil), 24+12, 8)
	p.send(h, reply)
	r := within(t, "reply", ended)
	checkEnded(t, r, nil)
	if r.err != nil {
		return
	}
	if !bytes.Equal(r.reply.Message, reply) {
		t.Errorf("got % x, want % x", r.reply.Message, reply)
	}
	if got := whole(r.reply, q.Sinks); !bytes.Equal(got, exchange.Reply(m.XID, "abcd", exchange.Pattern(1, 8), nil)) {
		t.Errorf("results % x of %+v", got, r.reply.Placed)
	}
	r.reply.Release()

	// The memory is the program's again, whatever is in it.
	ended = a.start(t.Context(), q)
	m = p.next()
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	if r = within(t, "reply", ended); r.err != nil || len(r.reply.Placed) > 0 || !bytes.Equal(r.reply.Message, exchange.Reply(m.XID, "abcd")) {
		t.Errorf("with the same sinks: %+v, %v", r.reply, r.err)
	}
}

// If a peer might still access memory of a call, the connection ends before the call
// returns the memory to the program.
//
// Claims: P8166-4.5.4-2
func TestMemoryThatCannotBeTakenBackClosesTheConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	requesters := make(chan *requester, 1)
	type end struct {
		err   error
		state verbs.State // of the queue pair, when the call had ended
	}
	over := make(chan end, 1)
	a.calls.Go(func() {
		_, err := a.Call(t.Context(), everything())
		over <- end{err, (<-requesters).e.qp.State()}
	})
	p := a.peer()
	m := p.next()
	a.Client.mu.Lock()
	r := a.Client.link.r
	a.Client.mu.Unlock()
	requesters <- r
	r.mu.Lock()
	err := r.xids[m.XID].regions[0].mr.Deallocate() // so that it cannot be done again
	r.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	if got := within(t, "end", over); !errors.Is(got.err, verbs.ErrSTag) || got.state == verbs.RTS {
		t.Errorf("the call has ended with %v, and the queue pair is in %v", got.err, got.state)
	}
	if _, open := p.nextOrEnd(); open {
		t.Error("the connection goes on")
	}
	// The next call has a connection of its own.
	ended := a.start(t.Context(), nullClientCall())
	p = a.peer()
	m = p.next()
	p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

// However late a client is, there is a receive for each reply to come, and for
// each call that it lets its server make.
//
// Claims: P8166-3.3.1-8 P8167-4.3.1-1
func TestEveryReplyHasItsReceive(t *testing.T) {
	for name, cfg := range map[string]ClientConfig{
		"replies alone":      {Credits: 20},
		"calls back as well": {Credits: 20, Reverse: upper, ReverseCredits: 12},
	} {
		t.Run(name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a := answer(t, cfg, &both)
			p := a.grants(20)
			var ended []<-chan result
			var calls []*incoming
			for range 20 {
				ended = append(ended, a.start(t.Context(), nullClientCall()))
				calls = append(calls, p.next())
			}
			a.Client.mu.Lock()
			r := a.Client.link.r
			a.Client.mu.Unlock()
			r.mu.Lock() // the client takes no reply, and none of what is behind it
			for _, m := range calls {
				p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
			}
			for xid := range uint32(cfg.ReverseCredits) {
				p.send(wire.Header{XID: xid}, callMessage(xid, 1, []byte("abcd")))
			}
			_, err := p.read(wire.Segment{}) // all that was sent has arrived
			r.mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range ended {
				checkEnded(t, within(t, "reply", e), nil)
			}
			for range cfg.ReverseCredits {
				if m := p.next(); wire.DirectionOf(m.payload) != wire.DirectionReply {
					t.Errorf("got %+v", m.Header)
				}
			}
		})
	}
}

// Memory is exposed to one peer, by an STag that no other can use.
//
// Claims: S-6.3.6-1 P-11-4 P8166-8.1-1 P8166-8.1.1-1 S-6.4.5-1
func TestAnSTagIsOfOnePeerAlone(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	q := everything()
	ended := a.start(t.Context(), q)
	p := a.peer()
	m := p.next()
	seen := map[uint32]bool{}
	for _, s := range []wire.Segment{m.Writes[0][0], m.Writes[1][0], m.Reply[0]} {
		if seen[s.Handle] {
			t.Errorf("STag %#x is for two buffers", s.Handle)
		}
		seen[s.Handle] = true
	}

	// Another client of the same RNIC, whose server tries the STags of the first.
	other := must(NewClient(ClientConfig{RNIC: a.rnic, Bindings: exchange.Bindings, Dial: a.cfg.Dial, Backoff: 1}))(t)
	for stag := range seen {
		over := make(chan error, 1)
		a.calls.Go(func() {
			_, err := other.Call(t.Context(), nullClientCall())
			over <- err
		})
		evil := a.peer()
		evil.next()
		if err := evil.write(wire.Segment{Handle: stag, Length: 4}, []byte("evil")); err == nil {
			if _, err = evil.read(wire.Segment{}); err == nil {
				t.Errorf("STag %#x works for another peer", stag)
			}
		}
		evil.qp.Abort()
		next := a.peer() // the call is made again
		n := next.next()
		next.send(wire.Header{XID: n.XID}, exchangeNull(n.XID))
		if err := within(t, "reply", over); err != nil {
			t.Error(err)
		}
		next.qp.Abort()
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	for stag := range seen {
		evil := a.sibling()
		if err := evil.write(wire.Segment{Handle: stag, Length: 4}, []byte("evil")); err == nil {
			if _, err = evil.read(wire.Segment{}); err == nil {
				t.Errorf("STag %#x works for another connection of the same domain", stag)
			}
		}
		_ = evil.rnic.Close()
	}
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	checkEnded(t, within(t, "reply", ended), nil)
	for i, sink := range q.Sinks {
		if !bytes.Equal(sink, make([]byte, len(sink))) {
			t.Errorf("sink %d was written to", i)
		}
	}
}

// sibling is the peer of another queue pair of the client's domain.
func (a *answering) sibling() *testPeer {
	a.t.Helper()
	cq := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 8}))(a.t)
	qp := must(a.pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 8, ORD: 8}))(a.t)
	x, nc := iwarptest.BufferedPipe(1 << 20)
	a.calls.Go(func() { a.accept(nc, nil) })
	must(cm.Connect(a.t.Context(), qp, x, cm.Params{}))(a.t)
	must(0, qp.PostSend(verbs.SendWR{Op: verbs.OpWrite}))(a.t) // the peer may send now
	a.t.Cleanup(func() {
		qp.Abort()
		must(0, errors.Join(qp.Destroy(), cq.Destroy()))(a.t)
	})
	return a.peer()
}
