package rpcrdma

import (
	"bytes"
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/payload"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// expose lends a reply, or a part of it, to the client, in two segments.
func (p *testPeer) expose(position int, b []byte) []wire.ReadSegment {
	p.t.Helper()
	s := p.lend(b, verbs.RemoteRead)
	return reads(position, segments(s, len(b)/2, len(b)-len(b)/2)...)
}

// done checks that the next message is the RDMA_DONE of an XID.
func (p *testPeer) done(xid uint32) {
	p.t.Helper()
	if m := p.next(); m.Proc != wire.ProcDone || m.XID != xid || m.wc.Bytes != wire.DoneLen {
		p.t.Errorf("got %v of XID %#x, %d octets, want the RDMA_DONE of %#x", m.Proc, m.XID, m.wc.Bytes, xid)
	}
}

// Claims: P-3.4-10 P-3.5-4 P-3.8-5 P-5.1-4
func TestAReplyByReadListIsFetchedAndThenDone(t *testing.T) {
	item := exchange.Pattern(3, 5001)
	for _, test := range []struct {
		name  string
		reply func(p *testPeer, m *incoming)
		want  error
	}{
		{"all of it", func(p *testPeer, m *incoming) {
			p.send(wire.Header{XID: m.XID, Proc: wire.ProcNoMsg, Reads: p.expose(0, exchange.Reply(m.XID, "abcd", item))})
		}, nil},
		{"an item of it, without roundup", func(p *testPeer, m *incoming) {
			stream := exchange.Reply(m.XID, "abcd", item)
			p.send(wire.Header{XID: m.XID, Reads: p.expose(24+12, bytes.Clone(item))}, without(stream, 24+12, 5004))
		}, nil},
		{"all of it but an item, and that", func(p *testPeer, m *incoming) {
			stream := exchange.Reply(m.XID, "abcd", item)
			list := append(p.expose(24+12, append(bytes.Clone(item), 0, 0, 0)), p.expose(0, without(stream, 24+12, 5004))...)
			p.send(wire.Header{XID: m.XID, Proc: wire.ProcNoMsg, Reads: list})
		}, nil},
		{"another's", func(p *testPeer, m *incoming) {
			p.send(wire.Header{XID: m.XID, Proc: wire.ProcNoMsg, Reads: p.expose(0, exchange.Reply(m.XID+1, "abcd", item))})
		}, &wire.Error{Fault: wire.FaultChunk}},
		{"a chunk where nothing leads to", func(p *testPeer, m *incoming) {
			p.send(wire.Header{XID: m.XID, Reads: p.expose(4000, bytes.Clone(item))}, exchange.Reply(m.XID, "abcd"))
		}, &wire.Error{Fault: wire.FaultStream}},
	} {
		t.Run(test.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
			p := a.grants(2)
			q := exchange.Call(exchange.Args("abcd", nil, len(item)))
			ended := a.start(t.Context(), q)
			m := p.next()
			test.reply(p, m)
			p.done(m.XID)
			r := within(t, "reply", ended)
			checkEnded(t, r, test.want)
			if want := exchange.Reply(m.XID, "abcd", item); r.err == nil && !bytes.Equal(r.reply.Message, want) {
				t.Errorf("got %d octets, want %d", len(r.reply.Message), len(want))
			}
		})
	}
}

// A call's chunks are free with its reply, and a Reply chunk is the client's own memory:
// a server waits for no RDMA_DONE then.
//
// Claims: P-3.8-7 P-5.2-5
func TestOnlyAReplyByReadListIsDone(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
	p := a.grants(2)
	// next is the next message, which is to be a call.
	next := func() *incoming {
		m := p.next()
		if m.Proc == wire.ProcDone {
			t.Fatalf("got an RDMA_DONE of XID %#x, want a call", m.XID)
		}
		return m
	}
	for _, byChunk := range []bool{false, true} {
		ended := a.start(t.Context(), everything())
		m := next()
		if len(m.Reads) == 0 || !m.HasReply {
			t.Fatalf("got a call without Read chunk and Reply chunk: %+v", m.Header)
		}
		h, reply := untouched(&m.Header), exchange.Reply(m.XID, "abcd")
		if byChunk {
			if err := p.write(m.Reply[0], reply); err != nil {
				t.Fatal(err)
			}
			h.Proc, h.Reply[0].Length = wire.ProcNoMsg, uint32(len(reply))
			p.send(h)
		} else {
			p.send(h, reply)
		}
		checkEnded(t, within(t, "reply", ended), nil)
	}
	ended := a.start(t.Context(), nullClientCall())
	m := next()
	p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

// A call may have Read chunks, Write chunks or both, and its reply be by Read list or not.
//
// Claims: P-3.8-17
func TestChunksOfCallsAndRepliesCombine(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
	p := a.grants(2)
	const n = 5000
	result := exchange.Pattern(3, n)
	for combination := range 8 {
		reads, writes, fetched := combination&1 != 0, combination&2 != 0, combination&4 != 0
		var items, results [][]byte
		var wanted []int
		if reads {
			items = [][]byte{exchange.Pattern(1, n)}
		}
		if writes {
			wanted, results = []int{n}, [][]byte{result}
		}
		q := exchange.Call(exchange.Args("abcd", items, wanted...))
		if writes {
			q.Sinks = [][]byte{make([]byte, n)}
		}
		ended := a.start(t.Context(), q)
		m := p.next()
		if len(m.Reads) > 0 != reads || len(m.Writes) > 0 != writes {
			t.Fatalf("Reads %t, Writes %t: the call is %+v", reads, writes, m.Header)
		}
		h, want := untouched(&m.Header), exchange.Reply(m.XID, "abcd", results...)
		stream := want
		if writes {
			if err := p.write(m.Writes[0][0], result); err != nil {
				t.Fatal(err)
			}
			h.Writes[0][0].Length = n
			stream = without(want, 24+12, n)
		}
		if fetched {
			h.Proc, h.Reads = wire.ProcNoMsg, p.expose(0, stream)
			p.send(h)
			p.done(m.XID)
		} else {
			p.send(h, stream)
		}
		r := within(t, "reply", ended)
		checkEnded(t, r, nil)
		if r.err == nil && !bytes.Equal(whole(r.reply, q.Sinks), want) {
			t.Errorf("Reads %t, Writes %t, fetched %t: the reply is not whole", reads, writes, fetched)
		}
	}
}

// The RDMA_DONE does not wait for a Send that is under way, nor is it left out.
//
// Claims: P-3.8-5
func TestAnRDMADoneIsSentThoughAllSendsAreUnderWay(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
	p := a.grants(2)
	ended := a.start(t.Context(), nullClientCall())
	m := p.next()
	under := a.takeSends()
	p.send(wire.Header{XID: m.XID, Proc: wire.ProcNoMsg, Reads: p.expose(0, exchangeNull(m.XID))})
	p.done(m.XID)
	checkEnded(t, within(t, "reply", ended), nil)
	for _, s := range under {
		s.sent(nil, nil)
	}
}

// takeSends waits until a Send of the client is not under way any more, and takes all
// such, as if they were.
func (a *answering) takeSends() (taken []*sending) {
	a.Client.mu.Lock()
	r := a.Client.link.r
	a.Client.mu.Unlock()
	for len(taken) == 0 {
		runtime.Gosched()
		r.mu.Lock()
		taken, r.free = r.free, nil
		r.mu.Unlock()
	}
	return taken
}

func TestAReplyByReadListThatNobodyWaitsForIsDoneUnread(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
	p := a.grants(2)
	ctx, cancel := context.WithCancel(context.Background())
	ended := a.start(ctx, nullClientCall())
	m := p.next()
	cancel()
	checkEnded(t, within(t, "end", ended), context.Canceled)
	p.send(wire.Header{XID: m.XID, Proc: wire.ProcNoMsg, Reads: reads(0, wire.Segment{Handle: 0xbad00, Length: 100, Offset: 0})})
	p.done(m.XID)
	ended = a.start(t.Context(), nullClientCall())
	m = p.next()
	p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

func TestAReplyThatCannotBeReadEndsTheConnectionAndItsCallIsMadeAgain(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
	ended := a.start(t.Context(), nullClientCall())
	p := a.peer()
	m := p.next()
	p.send(wire.Header{XID: m.XID, Proc: wire.ProcNoMsg, Reads: reads(0, wire.Segment{Handle: 0xbad00, Length: 100, Offset: 0})})
	p = a.peer()
	again := p.next()
	if again.XID != m.XID {
		t.Errorf("XID %#x, want %#x again", again.XID, m.XID)
	}
	p.send(wire.Header{XID: again.XID}, exchangeNull(again.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

// Claims: P-3.8-13 P-3.8-15 P-3.8-16
func TestRDMADonesTakeCredits(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
	p := a.grants(2)
	first := a.start(t.Context(), nullClientCall())
	m := p.next()
	reply := func(m *incoming, credits uint32) {
		list := p.expose(0, exchangeNull(m.XID))
		p.send(wire.Header{XID: m.XID, Proc: wire.ProcNoMsg, Credits: credits, Reads: list})
		p.done(m.XID)
	}
	reply(m, 2)
	checkEnded(t, within(t, "reply", first), nil)
	// Two credits, of which the RDMA_DONE has taken one until the next grant.
	second, third := a.start(t.Context(), nullClientCall()), a.start(t.Context(), nullClientCall())
	m = p.next()
	if _, err := p.read(wire.Segment{}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.recvCQ.PollOne(); err == nil {
		t.Error("two calls and an RDMA_DONE with two credits")
	}
	fourth := a.start(t.Context(), nullClientCall())
	p.send(wire.Header{XID: m.XID, Credits: 2}, exchangeNull(m.XID))
	// This grant came after it: now there are two again.
	for _, m := range []*incoming{p.next(), p.next()} {
		p.send(wire.Header{XID: m.XID, Credits: 2}, exchangeNull(m.XID))
	}
	for _, ended := range []<-chan result{second, third, fourth} {
		checkEnded(t, within(t, "reply", ended), nil)
	}
}

// Claims: P-3.9-5 P-3.9-6
func TestThePadsOfAReplyAreTakenOut(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666}, &both)
	item := exchange.Pattern(3, 600)
	var p *testPeer
	for _, test := range []struct {
		align, threshold uint32
		pads             bool
	}{
		{0, 512, false},
		{1, 512, false},
		{256, 512, true},
		{256, 600, true},
		{256, 600, false}, // if the threshold is read as "exceeds"
		{256, 601, false},
	} {
		align := test.align
		ended := a.start(t.Context(), exchange.Call(exchange.Args("abcd", nil, len(item))))
		if p == nil {
			p = a.peer()
		}
		m := p.next()
		stream := exchange.Reply(m.XID, "abcd", item)
		h := wire.Header{XID: m.XID, Proc: wire.ProcMsgP, Align: align, Threshold: test.threshold}
		pad := 0
		if test.pads {
			pad = 256 - (36 + 24 + 12) // from the first octet of the Send
		}
		p.send(h, stream[:24+12], make([]byte, pad), stream[24+12:])
		r := within(t, "reply", ended)
		checkEnded(t, r, nil)
		if r.err == nil && !bytes.Equal(r.reply.Message, stream) {
			t.Errorf("%+v: got % x, want % x", test, r.reply.Message, stream)
		}
	}
}

// configured answers CONF_RDMA, which has to be the first call.
func (p *testPeer) configured(reply wire.ConfReply) wire.ConfCall {
	p.t.Helper()
	m := p.next()
	var call oncrpc.Call
	var conf wire.ConfCall
	at, err := call.Parse(m.payload)
	if err != nil || call.Prog != wire.ConfProgram || call.Vers != wire.ConfVersion || call.Proc != wire.ConfRDMA || conf.Parse(m.payload[at:]) != nil || m.HasReply {
		p.t.Fatalf("the first call is % x, want CONF_RDMA", m.payload)
	}
	p.send(wire.Header{XID: m.XID, Credits: 8}, exchangeNull(m.XID), reply.Append(nil))
	return conf
}

// Claims: P-5-2 P-6.1-1 P-6.1-4 P-6.1-5 P-6.2-4 P-6.2-6 P-6-3
func TestCONFRDMAComesFirstAndSetsTheLimits(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666, Configure: true, Reads: 16}, nil)
	ended := a.start(t.Context(), exchange.Call(exchange.Args("ab", [][]byte{exchange.Pattern(1, 1500)})))
	p := a.peer()
	want := wire.ConfCall{MaxCallSendSize: 4096, MaxReplySendSize: 4096, MaxRDMARead: 16}
	if got := p.configured(wire.ConfReply{MaxCallSendSize: 2048, Align: 256, MaxRDMARead: 4}); got != want {
		t.Errorf("the client asks for %+v, want %+v", got, want)
	}
	m := p.next()
	// 1500 octets fit inline now.
	if len(m.Reads) != 0 || m.wc.Bytes > 2048 || m.Proc != wire.ProcMsg {
		t.Errorf("%v of %d octets with %d Read segments", m.Proc, m.wc.Bytes, len(m.Reads))
	}
	p.send(wire.Header{XID: m.XID, Credits: 8}, exchange.Reply(m.XID, "ab"))
	checkEnded(t, within(t, "reply", ended), nil)
	ended = a.start(t.Context(), exchange.Call(exchange.Args("ab", [][]byte{exchange.Pattern(1, 2500)})))
	m = p.next()
	if len(m.Reads) != 1 || m.wc.Bytes > 2048 {
		t.Errorf("%v of %d octets with %d Read segments", m.Proc, m.wc.Bytes, len(m.Reads))
	}
	p.send(untouched(&m.Header), exchange.Reply(m.XID, "ab"))
	checkEnded(t, within(t, "reply", ended), nil)
}

// Claims: P-6-4
func TestAServerWithoutCONFRDMAIsNotMinded(t *testing.T) {
	for name, answer1 := range map[string]func(p *testPeer, xid uint32){
		"PROG_UNAVAIL": func(p *testPeer, xid uint32) {
			b, _ := (&oncrpc.Reply{XID: xid, Accept: oncrpc.ProgUnavail}).Append(nil)
			p.send(wire.Header{XID: xid}, b)
		},
		"ERR_CHUNK": func(p *testPeer, xid uint32) { p.raw(wire.AppendErrChunk(nil, xid, 8)) },
		"nonsense":  func(p *testPeer, xid uint32) { p.send(wire.Header{XID: xid}, exchangeNull(xid), exchange.Word(1)) },
	} {
		t.Run(name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a := answer(t, ClientConfig{Configure: true}, nil)
			ended := a.start(t.Context(), exchange.Call(exchange.Args("ab", [][]byte{exchange.Pattern(1, 1500)})))
			p := a.peer()
			answer1(p, p.next().XID)
			m := p.next()
			if len(m.Reads) != 1 || m.wc.Bytes > wire.MinThreshold {
				t.Errorf("%d octets with %d Read segments", m.wc.Bytes, len(m.Reads))
			}
			p.send(untouched(&m.Header), exchange.Reply(m.XID, "ab"))
			checkEnded(t, within(t, "reply", ended), nil)
		})
	}
}

func TestAServerThatDoesNotAnswerCONFRDMAIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswering()
		a.calling = call(t, ClientConfig{Configure: true, DialTimeout: time.Second}, func(_, nc *iwarptest.Conn) error {
			a.calls.Go(func() { a.accept(nc, nil) })
			return nil
		})
		ended := a.start(t.Context(), nullClientCall())
		p := a.peer()
		if m := p.next(); len(m.payload) != 40+wire.ConfLen {
			t.Errorf("the first call is % x, want CONF_RDMA", m.payload)
		}
		p = a.peer()
		m := p.next()
		if len(m.payload) != 40 {
			t.Errorf("then comes % x, want the call", m.payload)
		}
		p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
		checkEnded(t, within(t, "reply", ended), nil)
		a.close()
		_ = p.rnic.Close()
	})
}

// itemsCall is a call whose arguments are two items.
func itemsCall(first, last []byte) *oncrpc.ClientCall {
	e := oncrpc.NewEncoder(nil)
	e.Opaque(first, 1<<20)
	e.Opaque(last, 1<<20)
	b, _ := e.Finish()
	return &oncrpc.ClientCall{Call: exchange.Call(nil).Call, Args: [][]byte{b}, MaxReply: 800}
}

var itemsBindings = payload.Bindings{{Prog: exchange.Program, Vers: exchange.Version}: exchange.TwoItems{}}

// Claims: P-3.9-1 P-6.2-14 P5667-4-5
func TestALongLastItemIsPaddedOnceAnAlignmentIsKnown(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Rules: worked.RFC5666, Configure: true, Bindings: itemsBindings}, &both)
	last := exchange.Pattern(2, 600)
	ended := a.start(t.Context(), itemsCall([]byte("abc"), last))
	p := a.peer()
	p.configured(wire.ConfReply{MaxCallSendSize: 2048, Align: 256})
	m := p.next()
	if m.Proc != wire.ProcMsgP || m.Align != 256 {
		t.Errorf("got %v with alignment %d, want RDMA_MSGP with 256", m.Proc, m.Align)
	}
	if sent := p.in[int(m.wc.ID)*peerSize:][:m.wc.Bytes]; bytes.Index(sent, last) != 256 {
		t.Errorf("the item is at octet %d, want 256", bytes.Index(sent, last))
	}
	p.send(wire.Header{XID: m.XID, Credits: 8}, exchangeNull(m.XID))
	checkEnded(t, within(t, "reply", ended), nil)
}

// A client that is not configured for RFC 5666 sends nothing of it: no CONF_RDMA, no
// pads, no RDMA_DONE.
//
// Claims: P-6-4 P8166-4.6.1-1 P8166-4.6.2-1
// Claims: P8166-A-1
func TestByDefaultCallsAreThoseOfRFC8166(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{Bindings: itemsBindings}, &both)
	var p *testPeer
	for range 3 {
		ended := a.start(t.Context(), itemsCall([]byte("abc"), exchange.Pattern(4, 600)))
		if p == nil {
			p = a.peer()
		}
		if m := p.next(); m.Proc != wire.ProcMsg || wire.DirectionOf(m.payload) != wire.DirectionCall || !bytes.Contains(m.payload, exchange.Pattern(4, 600)) {
			t.Errorf("got %v % x", m.Proc, m.payload)
		} else {
			p.send(wire.Header{XID: m.XID, Credits: 8}, exchangeNull(m.XID))
		}
		checkEnded(t, within(t, "reply", ended), nil)
	}
}

// Claims: P-3.9-2
func TestAPaddedCallIsServed(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{
		Rules: worked.RFC5666, Configure: &Configurator{Align: 256, Allow: func(*oncrpc.Call) bool { return true }}, Bindings: itemsBindings,
		Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			e := r.Accept(len(r.Args))
			e.Fixed(r.Args)
			return e.Finish()
		}),
	})
	c := callServer(s, ClientConfig{Rules: worked.RFC5666, Configure: true, Bindings: itemsBindings})
	for _, n := range []int{0, 511, 513, 600, 601, 602, 603, 650} {
		q := itemsCall([]byte("abc"), exchange.Pattern(n, n))
		r, err := c.Call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.Results, q.Args[0]) {
			t.Errorf("%d octets: got % x, want % x", n, r.Results, q.Args[0])
		}
		r.Release()
	}
}

// Claims: P-3.4-10 P-3.8-12
func TestAServerThatExposesRepliesIsDone(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{Rules: worked.RFC5666, ReadReplies: ReadReplies{Enabled: true}})
	c := callServer(s, ClientConfig{Rules: worked.RFC5666})
	for range 40 {
		q := exchange.Call(exchange.Args("abcd", nil, 9000))
		q.MaxReply = 100 // which is not true, so that there is no room for it
		r, err := c.Call(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if want := exchange.Reply(r.XID, "abcd", exchangeResult(nil, 9000)); !bytes.Equal(r.Message, want) {
			t.Fatalf("got %d octets, want %d", len(r.Message), len(want))
		}
		r.Release()
	}
}
