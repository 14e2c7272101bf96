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
	"github.com/weft-rdma/weft/verbs"
)

// Everything that a call with two sinks and a Reply chunk can get back.
func everything() *oncrpc.ClientCall {
	c := exchangeCall(exchangeArgs("abcd", [][]byte{pattern(1, 5000)}, 5000, 39, 4500))
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
	ended := a.start(t.Context(), exchangeCall(exchangeArgs("abcd", [][]byte{pattern(1, 5000)})))
	checkEnded(t, within(t, "end", ended), &Error{Fault: FaultLocal})
	ended = a.start(t.Context(), nullClientCall())
	m := p.next()
	p.send(Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

// Claims: P-2-2 P-4.1-19 P-4.2-1 P8166-4.2.4-3 P8166-4.3.1-1 P8166-4.5-1 P8166-4.5-3 P8166-4.5-8 P8166-4.6.1-3 P8166-4.6.2-2
func TestARequesterDropsWhatIsNoReplyAndWaitsOn(t *testing.T) {
	shorter := func(h Header, n int) []byte { return h.Append(nil)[:n] }
	for _, test := range []struct {
		name    string
		message func(xid uint32, h Header) []byte // h is a reply that uses nothing
	}{
		{"nothing", func(uint32, Header) []byte { return nil }},
		{"half an XID", func(uint32, Header) []byte { return []byte{1, 2} }},
		{"three words", func(_ uint32, h Header) []byte { return shorter(h, 12) }},
		{"a header one octet short", func(xid uint32, h Header) []byte { return shorter(Header{XID: xid, Credits: 1}, 27) }},
		{"a header without an RPC message", func(xid uint32, h Header) []byte { return Header{XID: xid, Credits: 1}.bytes() }},
		{"a list that is cut off", func(_ uint32, h Header) []byte { return shorter(h, h.Len()-4) }},
		{"an XID of nobody", func(xid uint32, h Header) []byte {
			h.XID ^= 0x5555
			return append(h.bytes(), exchangeNull(h.XID)...)
		}},
		{"another XID in the RPC message", func(xid uint32, h Header) []byte { return append(h.bytes(), exchangeNull(xid+1)...) }},
		{"a message type that does not exist", func(_ uint32, h Header) []byte { h.Proc = 5; return h.bytes() }},
		{"another version", func(xid uint32, h Header) []byte {
			b := append(h.bytes(), exchangeNull(xid)...)
			b[7] = 2
			return b
		}},
		{"an RDMA_MSGP", func(xid uint32, h Header) []byte {
			return append(Header{XID: xid, Proc: ProcMsgP, Align: 4, Threshold: 8, Credits: 1}.bytes(), exchangeNull(xid)...)
		}},
		{"an RDMA_DONE", func(xid uint32, _ Header) []byte { return AppendDone(nil, xid, 1) }},
		{"a call", func(xid uint32, _ Header) []byte {
			return append(Header{XID: xid, Credits: 1}.bytes(), nullCall(xid)...)
		}},
		{"a Read list", func(xid uint32, h Header) []byte {
			h.Reads = []ReadSegment{{24, Segment{1, 8, 0}}}
			return append(h.bytes(), exchangeNull(xid)...)
		}},
		{"an RDMA_NOMSG with a Read list", func(xid uint32, h Header) []byte {
			h.Proc, h.Reads = ProcNoMsg, []ReadSegment{{0, Segment{1, 8, 0}}}
			return h.bytes()
		}},
		{"an RDMA_NOMSG whose Reply chunk is not used", func(_ uint32, h Header) []byte { h.Proc = ProcNoMsg; return h.bytes() }},
		{"an RDMA_NOMSG without a Reply chunk", func(xid uint32, h Header) []byte {
			return Header{XID: xid, Proc: ProcNoMsg, Credits: 1}.bytes()
		}},
		{"an RDMA_MSG whose Reply chunk is used", func(xid uint32, h Header) []byte {
			h.Reply[0].Length = 4
			return append(h.bytes(), exchangeNull(xid)...)
		}},
		{"a Reply chunk longer than it was", func(_ uint32, h Header) []byte {
			h.Proc, h.Reply[0].Length = ProcNoMsg, 1<<20
			return h.bytes()
		}},
		{"a Write chunk longer than it was", func(xid uint32, h Header) []byte {
			h.Writes[0][0].Length = 5004
			return append(h.bytes(), exchangeNull(xid)...)
		}},
		{"a Write chunk elsewhere", func(xid uint32, h Header) []byte {
			h.Writes[1][0].Offset++
			return append(h.bytes(), exchangeNull(xid)...)
		}},
		{"a Write chunk of another STag", func(xid uint32, h Header) []byte {
			h.Writes[1][0].Handle++
			return append(h.bytes(), exchangeNull(xid)...)
		}},
		{"more Write chunks", func(xid uint32, h Header) []byte {
			h.Writes = append(h.Writes, WriteChunk{})
			return append(h.bytes(), exchangeNull(xid)...)
		}},
		{"an ERR_VERS that is cut off", func(xid uint32, _ Header) []byte { return AppendErrVers(nil, xid, 1, 1)[:24] }},
		{"an error of another version", func(xid uint32, _ Header) []byte {
			return Header{XID: xid, Proc: ProcError, Version: 2, Err: ErrChunk, Credits: 1}.bytes()
		}},
		{"an error of nobody", func(xid uint32, _ Header) []byte { return AppendErrChunk(nil, xid+9, 1) }},
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
			reply := exchangeReply(m.XID, "abcd")
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
			if m.Proc != ProcMsg {
				t.Errorf("the client has sent %v", m.Proc)
			}
			p.send(Header{XID: m.XID}, exchangeNull(m.XID))
			checkEnded(t, within(t, "reply", ended), nil)
		})
	}
}

// bytes is the header alone, version 1.
func (h Header) bytes() []byte {
	if h.Version == 0 {
		h.Version = Version
	}
	return h.Append(nil)
}

// Claims: P-4.1-13 P-4.3-16 P-8-1 P8166-4.5-7 P8166-6.1-5 P8166-6.1-6 P8166-7-1 P8267-6.4.2-4 P8267-6.4.2-5
func TestARepliesErrorsEndItsCallForGood(t *testing.T) {
	stream := &Error{Fault: FaultStream}
	placed := func(h Header, lengths ...int) Header {
		for i, n := range lengths {
			h.Writes[i][0].Length = uint32(n)
		}
		return h
	}
	results := func(xid uint32, counts ...uint32) []byte { // of which all data are elsewhere
		b := append(exchangeNull(xid), word(0)...)
		b = append(b, word(uint32(len(counts)))...)
		for _, n := range counts {
			b = append(b, word(n)...)
		}
		return append(b, word(0)...)
	}
	for _, test := range []struct {
		name   string
		cfg    ClientConfig
		answer func(p *testPeer, xid uint32, h Header)
		want   error
	}{
		{"ERR_VERS", ClientConfig{}, func(p *testPeer, xid uint32, _ Header) { p.raw(AppendErrVers(nil, xid, 1, 8)) },
			&RemoteError{Code: ErrVers, Low: 1, High: 1}},
		{"ERR_VERS of another version", ClientConfig{}, func(p *testPeer, xid uint32, _ Header) { p.raw(AppendErrVers(nil, xid, 7, 8)) },
			&RemoteError{Code: ErrVers, Low: 1, High: 1}},
		{"ERR_CHUNK", ClientConfig{}, func(p *testPeer, xid uint32, _ Header) { p.raw(AppendErrChunk(nil, xid, 8)) }, &RemoteError{Code: ErrChunk}},
		{"an error that nobody assigned", ClientConfig{}, func(p *testPeer, xid uint32, _ Header) {
			p.send(Header{XID: xid, Version: 1, Proc: ProcError, Err: 9})
		}, &RemoteError{Code: 9}},
		{"an error that nobody assigned, and no more", ClientConfig{}, func(p *testPeer, xid uint32, _ Header) {
			p.raw(Header{XID: xid, Proc: ProcError, Err: 9, Credits: 8}.bytes()[:20])
		}, &RemoteError{Code: 9}},
		{"SYSTEM_ERR", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			b, _ := (&oncrpc.Reply{XID: xid, Accept: oncrpc.SystemErr}).Append(nil)
			p.send(h, b)
		}, &oncrpc.AcceptError{Stat: oncrpc.SystemErr}},
		{"a denial", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			b, _ := (&oncrpc.Reply{XID: xid, Stat: oncrpc.MsgDenied, Reject: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}).Append(nil)
			p.send(h, b)
		}, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}},
		{"a used Write chunk without a result", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(placed(h, 8), exchangeReply(xid, ""))
		}, stream},
		{"a second used Write chunk for one result", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(placed(h, 8, 8), results(xid, 8))
		}, stream},
		{"an inline result with a Write chunk for it", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(h, exchangeReply(xid, "", pattern(1, 8)))
		}, stream},
		{"the same, taken", ClientConfig{InlineResults: true}, func(p *testPeer, xid uint32, h Header) {
			p.send(h, exchangeReply(xid, "", pattern(1, 8)))
		}, nil},
		{"a result and its chunk of other lengths", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(placed(h, 8), results(xid, 12))
		}, stream},
		{"a Write chunk with roundup beyond its end", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(placed(h, 0, 40), results(xid, 0, 39))
		}, nil},
		{"a result that takes what was counted for roundup", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(placed(h, 0, 40), results(xid, 0, 40))
		}, stream},
		{"results that are cut off", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(h, append(exchangeNull(xid), word(0)...))
		}, stream},
		{"octets behind the results", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			p.send(h, append(exchangeReply(xid, ""), word(0)...))
		}, stream},
		{"half a reply header", ClientConfig{}, func(p *testPeer, xid uint32, h Header) { p.send(h, exchangeNull(xid)[:20]) }, stream},
		{"a Reply chunk that holds nobody's reply", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			b := exchangeNull(xid + 1)
			if err := p.write(h.Reply[0], b); err != nil {
				p.t.Error(err)
			}
			h.Proc, h.Reply[0].Length = ProcNoMsg, uint32(len(b))
			p.send(h)
		}, &Error{Fault: FaultChunk}},
		{"a Reply chunk that holds half an XID", ClientConfig{}, func(p *testPeer, xid uint32, h Header) {
			h.Proc, h.Reply[0].Length = ProcNoMsg, 2
			p.send(h)
		}, &Error{Fault: FaultChunk}},
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
			p.send(Header{XID: next.XID}, exchangeNull(next.XID))
			checkEnded(t, within(t, "reply", ended), nil)
		})
	}
}

// Claims: P-3.3-4 P-3.3-7 P-3.3-9 P-3.3-10 P-3.3-15 P-4.1-7 P-6.1-4 P-6.1-5 P8166-3.3.1-2 P8166-3.3.1-4 P8166-3.3.1-6 P8166-3.3.3-2
// Claims: P8166-3.3.3-3
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
		if _, err := p.read(Segment{}); err != nil {
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
		p.raw(append(Header{XID: m.XID, Credits: credits}.bytes(), exchangeNull(m.XID)...))
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
	p.raw(AppendErrChunk(nil, calls[0].XID, 2)) // grants, too
	calls = calls[1:]
	outstanding(3)
	p.raw(append(Header{XID: 0x99, Credits: 4}.bytes(), exchangeNull(0x99)...)) // is nobody's
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
	if _, err := p.read(Segment{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.recvCQ.PollOne(); err == nil {
		t.Fatal("a call has come beyond the credits")
	}
	// The late reply says what it likes, is dropped, and gives its credit back.
	p.send(untouched(&m.Header), exchangeReply(m.XID, "abcd"))
	o := p.next()
	for _, m := range []*incoming{n, o} {
		p.send(Header{XID: m.XID}, exchangeNull(m.XID))
	}
	checkEnded(t, within(t, "reply", first), nil)
	checkEnded(t, within(t, "reply", second), nil)
	// A second one is nobody's.
	p.send(untouched(&m.Header), exchangeReply(m.XID, "abcd"))
	last := a.start(t.Context(), nullClientCall())
	n = p.next()
	p.send(Header{XID: n.XID}, exchangeNull(n.XID))
	checkEnded(t, within(t, "reply", last), nil)
}

// Claims: P-6.1-2 P8166-3.3.3-1 P8166-3.3.3-6 P8797-3.1-1 P8797-5.1-1 P8797-5.2-2
func TestWithoutPrivateDataMessagesHave1024Octets(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, nil)
	q := exchangeCall(exchangeArgs("", [][]byte{pattern(1, 1000)}, 2000))
	ended := a.start(t.Context(), q)
	p := a.peer()
	m := p.next()
	if m.wc.Bytes > MinThreshold || len(m.Reads) != 1 || !m.HasReply {
		t.Errorf("a Send of %d octets, %d Read segments, Reply chunk %v", m.wc.Bytes, len(m.Reads), m.HasReply)
	}
	p.send(untouched(&m.Header), exchangeReply(m.XID, ""))
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
	q := exchangeCall(exchangeArgs("", [][]byte{pattern(1, 2000)}, 2000))
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
	p.send(untouched(&again.Header), exchangeReply(again.XID, ""))
	checkEnded(t, within(t, "reply", ended), nil)
}

func TestAReplyThatIsNotReleasedStaysWhatItIs(t *testing.T) {
	nettest.CheckLeaks(t)
	c := callServer(serve(t, ServerConfig{}), ClientConfig{})
	var replies []*oncrpc.ClientReply
	for i := range 20 {
		q := exchangeCall(exchangeArgs("", [][]byte{pattern(i, 6000)}, 5000))
		r, err := c.Call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, r)
	}
	for i, r := range replies {
		if want := exchangeReply(r.XID, "", exchangeResult([][]byte{pattern(i, 6000)}, 5000)); !bytes.Equal(r.Message, want) {
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
	p.send(Header{XID: m.XID, Credits: 1}, exchangeNull(m.XID))
	n := p.next()
	p.send(Header{XID: n.XID, Credits: 1}, exchangeNull(n.XID))
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
