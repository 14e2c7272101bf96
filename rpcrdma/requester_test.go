package rpcrdma

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A call with two sinks and a Reply chunk.
func everything() *oncrpc.ClientCall {
	c := exchange.Call(exchange.Args("abcd", [][]byte{exchange.Pattern(1, 5000)}, 5000, 39, 4500))
	c.Sinks = [][]byte{make([]byte, 5000), make([]byte, 39)}
	return c
}

// Where the server may make no RDMA Reads a long call is not sent, and short ones are.
//
// Claims: P-6.2-12
func TestNoReadChunkIsSentWhereNoReadIsServed(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	dial := a.cfg.Dial
	a.cfg.Dial = func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
		p.MPA.IRD, p.MPA.ORD = mpa.NotNegotiated, mpa.NotNegotiated
		return dial(ctx, qp, p)
	}
	p := a.grants(2)
	ended := a.start(t.Context(), exchange.Call(exchange.Args("abcd", [][]byte{exchange.Pattern(1, 5000)})))
	checkEnded(t, within(t, "end", ended), &wire.Error{Fault: wire.FaultLocal})
	ended = a.start(t.Context(), nullClientCall())
	m := p.next()
	p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

// Claims: P-2-2 P-4.1-19 P-4.2-1 P8166-4.2.4-3 P8166-4.3.1-1 P8166-4.5-1 P8166-4.5-3 P8166-4.5-8 P8166-4.6.1-3 P8166-4.6.2-2
func TestARequesterDropsWhatIsNoReplyAndWaitsOn(t *testing.T) {
	shorter := func(h wire.Header, n int) []byte { return h.Append(nil)[:n] }
	for _, test := range []struct {
		name    string
		message func(xid uint32, h wire.Header) []byte // h is a reply that uses nothing
	}{
		{"nothing", func(uint32, wire.Header) []byte { return nil }},
		{"half an XID", func(uint32, wire.Header) []byte { return []byte{1, 2} }},
		{"three words", func(_ uint32, h wire.Header) []byte { return shorter(h, 12) }},
		{"a header one octet short", func(xid uint32, h wire.Header) []byte { return shorter(wire.Header{XID: xid, Credits: 1}, 27) }},
		{"a header without an RPC message", func(xid uint32, h wire.Header) []byte { return headerOnly(wire.Header{XID: xid, Credits: 1}) }},
		{"a list that is cut off", func(_ uint32, h wire.Header) []byte { return shorter(h, h.Len()-4) }},
		{"an XID of nobody", func(xid uint32, h wire.Header) []byte {
			h.XID ^= 0x5555
			return append(headerOnly(h), exchangeNull(h.XID)...)
		}},
		{"another XID in the RPC message", func(xid uint32, h wire.Header) []byte { return append(headerOnly(h), exchangeNull(xid+1)...) }},
		{"a message type that does not exist", func(_ uint32, h wire.Header) []byte { h.Proc = 5; return headerOnly(h) }},
		{"another version", func(xid uint32, h wire.Header) []byte {
			b := append(headerOnly(h), exchangeNull(xid)...)
			b[7] = 2
			return b
		}},
		{"an RDMA_MSGP", func(xid uint32, h wire.Header) []byte {
			return append(headerOnly(wire.Header{XID: xid, Proc: wire.ProcMsgP, Align: 4, Threshold: 8, Credits: 1}), exchangeNull(xid)...)
		}},
		{"an RDMA_DONE", func(xid uint32, _ wire.Header) []byte { return wire.AppendDone(nil, xid, 1) }},
		{"a call", func(xid uint32, _ wire.Header) []byte {
			return append(headerOnly(wire.Header{XID: xid, Credits: 1}), nullCall(xid)...)
		}},
		{"a Read list", func(xid uint32, h wire.Header) []byte {
			h.Reads = []wire.ReadSegment{{Position: 24, Segment: wire.Segment{Handle: 1, Length: 8, Offset: 0}}}
			return append(headerOnly(h), exchangeNull(xid)...)
		}},
		{"an RDMA_NOMSG with a Read list", func(xid uint32, h wire.Header) []byte {
			h.Proc, h.Reads = wire.ProcNoMsg, []wire.ReadSegment{{Position: 0, Segment: wire.Segment{Handle: 1, Length: 8, Offset: 0}}}
			return headerOnly(h)
		}},
		{"an RDMA_NOMSG whose Reply chunk is not used", func(_ uint32, h wire.Header) []byte { h.Proc = wire.ProcNoMsg; return headerOnly(h) }},
		{"an RDMA_NOMSG without a Reply chunk", func(xid uint32, h wire.Header) []byte {
			return headerOnly(wire.Header{XID: xid, Proc: wire.ProcNoMsg, Credits: 1})
		}},
		{"an RDMA_MSG whose Reply chunk is used", func(xid uint32, h wire.Header) []byte {
			h.Reply[0].Length = 4
			return append(headerOnly(h), exchangeNull(xid)...)
		}},
		{"a Reply chunk longer than it was", func(_ uint32, h wire.Header) []byte {
			h.Proc, h.Reply[0].Length = wire.ProcNoMsg, 1<<20
			return headerOnly(h)
		}},
		{"a Write chunk longer than it was", func(xid uint32, h wire.Header) []byte {
			h.Writes[0][0].Length = 5004
			return append(headerOnly(h), exchangeNull(xid)...)
		}},
		{"a Write chunk elsewhere", func(xid uint32, h wire.Header) []byte {
			h.Writes[1][0].Offset++
			return append(headerOnly(h), exchangeNull(xid)...)
		}},
		{"a Write chunk of another STag", func(xid uint32, h wire.Header) []byte {
			h.Writes[1][0].Handle++
			return append(headerOnly(h), exchangeNull(xid)...)
		}},
		{"more Write chunks", func(xid uint32, h wire.Header) []byte {
			h.Writes = append(h.Writes, wire.WriteChunk{})
			return append(headerOnly(h), exchangeNull(xid)...)
		}},
		{"an ERR_VERS that is cut off", func(xid uint32, _ wire.Header) []byte { return wire.AppendErrVers(nil, xid, 1, 1)[:24] }},
		{"an error of another version", func(xid uint32, _ wire.Header) []byte {
			return headerOnly(wire.Header{XID: xid, Proc: wire.ProcError, Version: 2, Err: wire.ErrChunk, Credits: 1})
		}},
		{"an error of nobody", func(xid uint32, _ wire.Header) []byte { return wire.AppendErrChunk(nil, xid+9, 1) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a := answer(t, ClientConfig{}, &both)
			q := everything()
			ended := a.start(t.Context(), q)
			p := a.peer()
			m := p.next()
			p.raw(test.message(m.XID, untouched(&m.Header)))
			// Had it been taken, the call would have ended. Now it gets its reply.
			reply := exchange.Reply(m.XID, "abcd")
			h := untouched(&m.Header)
			p.send(h, reply)
			r := within(t, "reply", ended)
			checkEnded(t, r, nil)
			if r.err == nil && !bytes.Equal(r.reply.Message, reply) {
				t.Errorf("got % x, want % x", r.reply.Message, reply)
			}
			// The client has answered nothing to it, and goes on.
			ended = a.start(t.Context(), nullClientCall())
			m = p.next()
			if m.Proc != wire.ProcMsg {
				t.Errorf("the client has sent %v", m.Proc)
			}
			p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
			checkEnded(t, within(t, "reply", ended), nil)
		})
	}
}

// headerOnly is a message without a payload, of version 1.
func headerOnly(h wire.Header) []byte {
	if h.Version == 0 {
		h.Version = wire.Version
	}
	return h.Append(nil)
}

// Claims: P-4.1-13 P-4.3-16 P-8-1 P8166-4.5-7 P8166-6.1-5 P8166-6.1-6 P8166-7-1 P8267-6.4.2-4 P8267-6.4.2-5
func TestARepliesErrorsEndItsCallForGood(t *testing.T) {
	stream := &wire.Error{Fault: wire.FaultStream}
	placed := func(h wire.Header, lengths ...int) wire.Header {
		for i, n := range lengths {
			h.Writes[i][0].Length = uint32(n)
		}
		return h
	}
	results := func(xid uint32, counts ...uint32) []byte { // of which all data are elsewhere
		b := append(exchangeNull(xid), exchange.Word(0)...)
		b = append(b, exchange.Word(uint32(len(counts)))...)
		for _, n := range counts {
			b = append(b, exchange.Word(n)...)
		}
		return append(b, exchange.Word(0)...)
	}
	for _, test := range []struct {
		name   string
		cfg    ClientConfig
		answer func(p *testPeer, xid uint32, h wire.Header)
		want   error
	}{
		{"ERR_VERS", ClientConfig{}, func(p *testPeer, xid uint32, _ wire.Header) { p.raw(wire.AppendErrVers(nil, xid, 1, 8)) },
			&wire.RemoteError{Code: wire.ErrVers, Low: 1, High: 1}},
		{"ERR_VERS of another version", ClientConfig{}, func(p *testPeer, xid uint32, _ wire.Header) { p.raw(wire.AppendErrVers(nil, xid, 7, 8)) },
			&wire.RemoteError{Code: wire.ErrVers, Low: 1, High: 1}},
		{"ERR_CHUNK", ClientConfig{}, func(p *testPeer, xid uint32, _ wire.Header) { p.raw(wire.AppendErrChunk(nil, xid, 8)) }, &wire.RemoteError{Code: wire.ErrChunk}},
		{"an error that nobody assigned", ClientConfig{}, func(p *testPeer, xid uint32, _ wire.Header) {
			p.send(wire.Header{XID: xid, Version: 1, Proc: wire.ProcError, Err: 9})
		}, &wire.RemoteError{Code: 9}},
		{"an error that nobody assigned, and no more", ClientConfig{}, func(p *testPeer, xid uint32, _ wire.Header) {
			p.raw(headerOnly(wire.Header{XID: xid, Proc: wire.ProcError, Err: 9, Credits: 8})[:20])
		}, &wire.RemoteError{Code: 9}},
		{"SYSTEM_ERR", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			b, _ := (&oncrpc.Reply{XID: xid, Accept: oncrpc.SystemErr}).Append(nil)
			p.send(h, b)
		}, &oncrpc.AcceptError{Stat: oncrpc.SystemErr}},
		{"a denial", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			b, _ := (&oncrpc.Reply{XID: xid, Stat: oncrpc.MsgDenied, Reject: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}).Append(nil)
			p.send(h, b)
		}, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}},
		{"a used Write chunk without a result", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(placed(h, 8), exchange.Reply(xid, ""))
		}, stream},
		{"a second used Write chunk for one result", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(placed(h, 8, 8), results(xid, 8))
		}, stream},
		{"an inline result with a Write chunk for it", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(h, exchange.Reply(xid, "", exchange.Pattern(1, 8)))
		}, stream},
		{"the same, taken", ClientConfig{InlineResults: true}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(h, exchange.Reply(xid, "", exchange.Pattern(1, 8)))
		}, nil},
		{"a result and its chunk of other lengths", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(placed(h, 8), results(xid, 12))
		}, stream},
		{"a Write chunk with roundup beyond its end", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(placed(h, 0, 40), results(xid, 0, 39))
		}, nil},
		{"a result that takes what was counted for roundup", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(placed(h, 0, 40), results(xid, 0, 40))
		}, stream},
		{"results that are cut off", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(h, append(exchangeNull(xid), exchange.Word(0)...))
		}, stream},
		{"octets behind the results", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			p.send(h, append(exchange.Reply(xid, ""), exchange.Word(0)...))
		}, stream},
		{"half a reply header", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) { p.send(h, exchangeNull(xid)[:20]) }, stream},
		{"a Reply chunk with a reply to no call", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			b := exchangeNull(xid + 1)
			if err := p.write(h.Reply[0], b); err != nil {
				p.t.Error(err)
			}
			h.Proc, h.Reply[0].Length = wire.ProcNoMsg, uint32(len(b))
			p.send(h)
		}, &wire.Error{Fault: wire.FaultChunk}},
		{"a Reply chunk that holds half an XID", ClientConfig{}, func(p *testPeer, xid uint32, h wire.Header) {
			h.Proc, h.Reply[0].Length = wire.ProcNoMsg, 2
			p.send(h)
		}, &wire.Error{Fault: wire.FaultChunk}},
	} {
		t.Run(test.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a := answer(t, test.cfg, &both)
			ended := a.start(t.Context(), everything())
			p := a.peer()
			m := p.next()
			test.answer(p, m.XID, untouched(&m.Header))
			checkEnded(t, within(t, "end", ended), test.want)
			// Nothing is tried again, and the connection lives.
			ended = a.start(t.Context(), nullClientCall())
			next := p.next()
			if next.XID == m.XID {
				t.Error("the call was made again")
			}
			p.send(wire.Header{XID: next.XID}, exchangeNull(next.XID))
			checkEnded(t, within(t, "reply", ended), nil)
		})
	}
}

// Claims: P-3.3-4 P-3.3-7 P-3.3-9 P-3.3-10 P-3.3-15 P-4.1-7 P-6.1-4 P-6.1-5 P8166-3.3.1-2 P8166-3.3.1-4 P8166-3.3.1-6 P8166-3.3.3-2
// Claims: P8166-3.3.3-3 P-4.1-6
func TestARequesterKeepsToTheCreditsThatItHas(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Credits: 4}, &both)
	var ended []<-chan result
	for range 20 {
		ended = append(ended, a.start(t.Context(), nullClientCall()))
	}
	p := a.peer()
	// outstanding takes all calls that come, of which there are to be n.
	var calls []*incoming
	outstanding := func(n int) {
		t.Helper()
		for len(calls) < n {
			m := p.next()
			if m.Credits != 4 {
				t.Errorf("a call asks for %d credits, want 4", m.Credits)
			}
			calls = append(calls, m)
		}
		// What is in order behind a Read of no octets has arrived with it.
		if _, err := p.read(wire.Segment{}); err != nil {
			t.Fatal(err)
		}
		if wc, err := p.recvCQ.PollOne(); err == nil {
			t.Fatalf("another call has come, %d octets, while %d are outstanding", wc.Bytes, n)
		}
	}
	reply := func(credits uint32) {
		t.Helper()
		m := calls[0]
		calls = calls[1:]
		p.raw(append(headerOnly(wire.Header{XID: m.XID, Credits: credits}), exchangeNull(m.XID)...))
	}
	outstanding(1)
	reply(1)
	outstanding(1)
	reply(0) // stands for 1
	outstanding(1)
	reply(3)
	outstanding(3)
	reply(2)
	outstanding(2)
	reply(1 << 31)
	outstanding(4)
	p.raw(wire.AppendErrChunk(nil, calls[0].XID, 2)) // grants, too
	calls = calls[1:]
	outstanding(3)
	p.raw(append(headerOnly(wire.Header{XID: 0x99, Credits: 4}), exchangeNull(0x99)...)) // replies to no call
	outstanding(3)
	for done := 6; done < 20; done++ {
		if len(calls) == 0 {
			calls = append(calls, p.next())
		}
		reply(4)
	}
	failed := 0
	for _, e := range ended {
		if r := within(t, "reply", e); r.err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d calls have failed, want the one with an ERR_CHUNK", failed)
	}
}

// Claims: P8166-3.3.1-2
func TestACallThatIsGivenUpKeepsItsCreditUntilItsReply(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	p := a.grants(2)
	ctx, cancel := context.WithCancel(context.Background())
	q := everything()
	given := a.start(ctx, q)
	m := p.next()
	cancel()
	checkEnded(t, within(t, "end", given), context.Canceled)

	// One credit is left.
	first, second := a.start(t.Context(), nullClientCall()), a.start(t.Context(), nullClientCall())
	n := p.next()
	if _, err := p.read(wire.Segment{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.recvCQ.PollOne(); err == nil {
		t.Fatal("a call has come beyond the credits")
	}
	// The late reply says what it likes, is dropped, and gives its credit back.
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	o := p.next()
	for _, m := range []*incoming{n, o} {
		p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	}
	checkEnded(t, within(t, "reply", first), nil)
	checkEnded(t, within(t, "reply", second), nil)
	// A second one replies to no call.
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	last := a.start(t.Context(), nullClientCall())
	n = p.next()
	p.send(wire.Header{XID: n.XID}, exchangeNull(n.XID))
	checkEnded(t, within(t, "reply", last), nil)
}

// Claims: P-6.1-2 P8166-3.3.3-1 P8166-3.3.3-6 P8797-3.1-1 P8797-5.1-1 P8797-5.2-2
func TestWithoutPrivateDataMessagesHave1024Octets(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, nil)
	q := exchange.Call(exchange.Args("", [][]byte{exchange.Pattern(1, 1000)}, 2000))
	ended := a.start(t.Context(), q)
	p := a.peer()
	m := p.next()
	if m.wc.Bytes > wire.MinThreshold || len(m.Reads) != 1 || !m.HasReply {
		t.Errorf("a Send of %d octets, %d Read segments, Reply chunk %v", m.wc.Bytes, len(m.Reads), m.HasReply)
	}
	p.send(untouched(&m.Header), exchange.Reply(m.XID, ""))
	checkEnded(t, within(t, "reply", ended), nil)
}

// Claims: P8797-4-3
func TestTheTermsOfANewConnectionHold(t *testing.T) {
	nettest.CheckLeaks(t)
	size := make(chan uint32, 2)
	size <- 4096
	size <- 1024
	a := newAnswering()
	a.calling = call(t, ClientConfig{}, a.sized(size))
	q := exchange.Call(exchange.Args("", [][]byte{exchange.Pattern(1, 2000)}, 2000))
	ended := a.start(t.Context(), q)
	p := a.peer()
	m := p.next()
	if len(m.Reads) != 0 || m.HasReply {
		t.Error("chunks, where all fits inline")
	}
	p.qp.Abort()
	p = a.peer()
	again := p.next()
	if again.XID != m.XID || len(again.Reads) != 1 || !again.HasReply || again.wc.Bytes > 1024 {
		t.Errorf("XID %#x, %d octets, %d Read segments, Reply chunk %v", again.XID, again.wc.Bytes, len(again.Reads), again.HasReply)
	}
	p.send(untouched(&again.Header), exchange.Reply(again.XID, ""))
	checkEnded(t, within(t, "reply", ended), nil)
}

func TestAReplyThatIsNotReleasedStaysWhatItIs(t *testing.T) {
	nettest.CheckLeaks(t)
	c := callServer(serve(t, ServerConfig{}), ClientConfig{})
	var replies []*oncrpc.ClientReply
	for i := range 20 {
		q := exchange.Call(exchange.Args("", [][]byte{exchange.Pattern(i, 6000)}, 5000))
		r, err := c.Call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, r)
	}
	for i, r := range replies {
		if want := exchange.Reply(r.XID, "", exchangeResult([][]byte{exchange.Pattern(i, 6000)}, 5000)); !bytes.Equal(r.Message, want) {
			t.Errorf("reply %d has changed", i)
		}
		r.Release()
		r.Release()
	}
}

func TestWaitingCallsEndWithTheirContexts(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	first := a.start(t.Context(), nullClientCall())
	p := a.peer()
	m := p.next()
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	waiting := a.start(ctx, everything())
	last := a.start(t.Context(), nullClientCall())
	cancel(why)
	checkEnded(t, within(t, "end", waiting), context.Canceled)
	p.send(wire.Header{XID: m.XID, Credits: 1}, exchangeNull(m.XID))
	n := p.next()
	p.send(wire.Header{XID: n.XID, Credits: 1}, exchangeNull(n.XID))
	checkEnded(t, within(t, "reply", first), nil)
	checkEnded(t, within(t, "reply", last), nil)
}

func TestACallThatIsGivenUpBeforeItIsSentGivesItsCreditBack(t *testing.T) {
	r := newRequester(nil, requesterConfig{credits: 1})
	calls := []*rpc{{signal: make(chan struct{}, 1)}, {signal: make(chan struct{}, 1)}, {signal: make(chan struct{}, 1)}}
	for i, x := range calls {
		x.call.XID = uint32(i)
		if _, err := r.enqueue(x); err != nil {
			t.Fatal(err)
		}
	}
	r.abandon(calls[1]) // waits
	r.abandon(calls[0]) // has the credit
	if calls[1].turn || !calls[2].turn || r.window.inflight != 1 {
		t.Errorf("turns %v and %v, %d in flight, want the last call to have the credit", calls[1].turn, calls[2].turn, r.window.inflight)
	}
}
