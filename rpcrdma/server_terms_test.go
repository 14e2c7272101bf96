package rpcrdma

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// Claims: P8166-3.3.2-1 P8166-3.3.3-6 P8166-3.5.3-1 P8166-3.5.3-6 P8797-3.1-1 P8797-4.2-2 P8797-5.1-1 P8797-5.2-2
func TestServerSendsNoMoreThanThePeerTakes(t *testing.T) {
	for _, c := range []struct {
		name string
		own  int
		peer *wire.PrivateData
		want int
	}{
		{"no private data", 4096, nil, 1024},
		{"smaller peer", 4096, &wire.PrivateData{SendSize: 8192, ReceiveSize: 2048}, 2048},
		{"smaller server", 2048, &wire.PrivateData{SendSize: 1024, ReceiveSize: 8192}, 2048},
		{"equal", 4096, &wire.PrivateData{SendSize: 4096, ReceiveSize: 4096}, 4096},
	} {
		t.Run(c.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			p := serve(t, ServerConfig{SendSize: c.own}).connect(c.peer, verbs.QPConfig{IRD: 8, ORD: 8})
			if d, ok := wire.ParsePrivateData(p.conn.PrivateData()); !ok || !d.RemoteInvalidation || d.SendSize != uint32(c.own) || d.ReceiveSize != 4096 {
				t.Errorf("the server said %+v", d)
			}
			sink := make([]byte, 16<<10)
			mem := p.lend(sink, verbs.RemoteWrite)
			header := wire.Header{XID: 3, HasReply: true, Reply: wire.WriteChunk{mem}}
			fixed := header.Len() + len(exchange.Reply(3, "abcd", nil))
			for _, n := range []int{c.want - fixed, c.want - fixed + 4} { // n is a multiple of 4
				p.send(header, exchangeMessage(3, "abcd", nil, n))
				m := p.next()
				if inline := m.Proc == wire.ProcMsg; inline != (n == c.want-fixed) || int(m.wc.Bytes) > c.want {
					t.Errorf("reply with a result of %d octets came as %v of %d octets, the threshold is %d", n, m.Proc, m.wc.Bytes, c.want)
				}
			}
		})
	}
}

// Claims: P8797-3.2-1 P8797-4.1-1 P8797-4.1-2 P8797-4.1-3
func TestAReplyInvalidatesWhatBelongsToItsCallAlone(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, server := range []bool{false, true} {
		for _, client := range []bool{false, true} {
			p := serve(t, ServerConfig{NoRemoteInvalidation: !server}).
				connect(&wire.PrivateData{RemoteInvalidation: client, SendSize: 4096, ReceiveSize: 4096}, verbs.QPConfig{IRD: 8, ORD: 8})
			item := exchange.Pattern(1, 400)
			stream := without(exchangeMessage(1, "abcd", [][]byte{item}, 200), position, 400)
			both := verbs.RemoteRead | verbs.RemoteWrite
			one, two := p.lend(bytes.Clone(item), both), p.lend(bytes.Clone(item), both)
			for _, c := range []struct {
				name   string
				header wire.Header
				body   []byte
				want   bool
			}{
				{"no chunks", wire.Header{XID: 1}, nullCall(1), false},
				{"two handles in one chunk", wire.Header{XID: 1, Reads: reads(position, one.Cut(0, 200), two.Cut(0, 200))}, stream, false},
				{"two handles in two lists", wire.Header{XID: 1, Reads: reads(position, one), Writes: []wire.WriteChunk{{two}}}, stream, false},
				{"another handle in the Reply chunk", wire.Header{XID: 1, Reads: reads(position, one), HasReply: true, Reply: wire.WriteChunk{two}}, stream, false},
				{"one handle in all lists", wire.Header{XID: 1, Reads: reads(position, segments(one, 200, 200)...), HasReply: true, Reply: wire.WriteChunk{one}}, stream, server && client},
				{"one segment", wire.Header{XID: 1, Writes: []wire.WriteChunk{{two}}}, exchangeMessage(1, "abcd", nil, 20), server && client},
			} {
				p.send(c.header, c.body)
				m := p.next()
				if m.Proc == wire.ProcError || m.wc.HasInvalidated != c.want {
					t.Errorf("server %v, client %v, %s: reply %v, invalidated %v, want %v", server, client, c.name, m.Proc, m.wc.HasInvalidated, c.want)
				}
			}
		}
	}
}

// Claims: P-3.6-1 P-3.6-2 P-3.6-4 P-3.7-8 P-3.8-2 P5667-3-3 P5667-3-4 P5667-3-5 P5667-4-2 P5667-5-2 P8166-3.4.6-1 P8166-3.4.6.2-2
// Claims: P8166-3.4.6.2-3 P8166-3.4.6-3 P8166-3.4.6-4 P8166-3.5.3-5 P8166-3.5.3-6 P8166-3.5.3-7 P8166-3.5.3-8 P8166-4.3.2-1 P8166-4.3.2.1-1
// Claims: P8166-4.3.2.2-3 P8166-4.3.2.3-2 P8166-4.3.2.3-3 P8166-4.3.3-3 P8166-4.3.3-4
func TestResultsGoWhereTheCallWantsThem(t *testing.T) {
	nettest.CheckLeaks(t)
	p := serve(t, ServerConfig{}).full()
	sink := make([]byte, 8192)
	for _, c := range []struct {
		name   string
		writes [][]int // lengths of segments, one behind the other in sink
		reply  int     // octets of the Reply chunk, behind them
		wanted []int
		want   [][]int // lengths that come back
		inline []int   // results in the stream
	}{
		{"one result", [][]int{{100}}, 0, []int{100}, [][]int{{100}}, nil},
		{"odd", [][]int{{104}}, 0, []int{101}, [][]int{{101}}, nil},
		{"over segments", [][]int{{10, 0, 30, 100}}, 0, []int{41}, [][]int{{10, 0, 30, 1}}, nil},
		{"two results", [][]int{{100}, {200}}, 0, []int{5, 200}, [][]int{{5}, {200}}, nil},
		{"no octets", [][]int{{100}, {100}}, 0, []int{0, 7}, [][]int{{0}, {7}}, nil},
		{"empty chunk", [][]int{{}, {100}}, 0, []int{5, 6}, [][]int{{}, {6}}, []int{0}},
		{"chunk of no octets", [][]int{{0, 0}, {100}}, 0, []int{5, 6}, [][]int{{0, 0}, {6}}, []int{0}},
		{"more results than chunks", [][]int{{100}}, 0, []int{5, 6}, [][]int{{5}}, []int{1}},
		{"more chunks than results", [][]int{{100}, {50, 50}, {}}, 0, []int{5}, [][]int{{5}, {0, 0}, {}}, nil},
		{"no result", [][]int{{50, 50}}, 0, nil, [][]int{{0, 0}}, nil},
		{"Reply chunk not needed", [][]int{{5000}}, 300, []int{5000}, [][]int{{5000}}, nil},
		{"the rest too long", [][]int{{100}}, 5000, []int{100, 4500}, [][]int{{100}}, []int{1}},
	} {
		clear(sink)
		mem := p.lend(sink, verbs.RemoteWrite)
		at := 0
		header := wire.Header{XID: 6}
		for _, lengths := range c.writes {
			header.Writes = append(header.Writes, segments(mem.Cut(at, 0), lengths...))
			at += sumOf(lengths)
		}
		if c.reply > 0 {
			header.HasReply, header.Reply = true, wire.WriteChunk{mem.Cut(at, c.reply)}
		}
		p.send(header, exchangeMessage(6, "abcd", nil, c.wanted...))
		m := p.next()
		if len(m.Reads) > 0 {
			t.Errorf("%s: the reply has a Read list", c.name)
		}
		if m.HasReply != header.HasReply {
			t.Errorf("%s: the Reply chunk did not come back", c.name)
		}
		if err := m.CheckReturned(&header); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		// Put the reply together again and compare it.
		var lengths [][]int
		for _, chunk := range m.Writes {
			list := []int{}
			for _, s := range chunk {
				list = append(list, int(s.Length))
			}
			lengths = append(lengths, list)
		}
		if fmt.Sprint(lengths) != fmt.Sprint(c.want) {
			t.Errorf("%s: chunks came back with %v octets, want %v", c.name, lengths, c.want)
		}
		stream := m.payload
		if m.Proc == wire.ProcNoMsg {
			stream = sink[at:][:m.Reply.Length()]
		}
		results := make([][]byte, len(c.wanted))
		for i, n := range c.wanted {
			results[i] = exchangeResult(nil, n)
		}
		want := reducedReply(6, "abcd", results, c.inline)
		if !bytes.Equal(stream, want) {
			t.Errorf("%s: the stream is\n%x, want\n%x", c.name, stream, want)
		}
		wantSink := make([]byte, len(sink))
		at = 0
		for i, chunk := range c.writes {
			if n := sumOf(c.want[i]); n > 0 {
				copy(wantSink[at:], results[i][:n])
			}
			at += sumOf(chunk)
		}
		if m.Proc == wire.ProcNoMsg {
			copy(wantSink[at:], want)
		}
		if !bytes.Equal(sink, wantSink) {
			t.Errorf("%s: what was placed is not the results", c.name)
		}
	}
}

func sumOf(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

// reducedReply is the stream of a reply to EXCHANGE in which only the results of
// some indices are.
func reducedReply(xid uint32, tag string, results [][]byte, inline []int) []byte {
	b := exchange.Reply(xid, tag, results...)
	at := 24 + 8
	for i, r := range results {
		at += 4
		n := len(r) + wire.Pad(uint64(len(r)))
		keep := false
		for _, k := range inline {
			keep = keep || k == i
		}
		if !keep {
			b = without(b, at, n)
			n = 0
		}
		at += n
	}
	return b
}

// Claims: P-3.4-4 P-3.4-20 P-3.4-23 P-3.5-2 P-3.7-2 P-3.7-3 P-3.7-5 P-5.1-2 P-5.1-3 P8166-3.4.3-1 P8166-3.4.4-1 P8166-3.4.5-1
// Claims: P8166-3.4.5.2-2 P8166-3.4.5.2-3 P8166-3.4.5.2-4 P8166-3.4.5-3 P8166-3.5.3-4 P8267-6.4.2-2
func TestCallsArePutTogetherWhereverTheirPiecesAre(t *testing.T) {
	nettest.CheckLeaks(t)
	var got []byte
	p := serve(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		got = bytes.Clone(r.Message)
		return serveExchange(ctx, r)
	})}).full()
	first, second := exchange.Pattern(1, 41), exchange.Pattern(2, 3001)
	stream := exchangeMessage(9, "abcd", [][]byte{first, second}, 41)
	two := position + 44 + 4 // where the second item is
	inline := without(without(stream, two, 3004), position, 44)
	want := exchange.Reply(9, "abcd", first)
	for _, c := range []struct {
		name string
		call func() (wire.Header, []byte)
	}{
		{"two chunks without roundup", func() (wire.Header, []byte) {
			a, b := p.lend(first, verbs.RemoteRead), p.lend(second, verbs.RemoteRead)
			return wire.Header{Reads: append(reads(position, a), reads(two, b)...)}, inline
		}},
		{"in the other order", func() (wire.Header, []byte) {
			a, b := p.lend(first, verbs.RemoteRead), p.lend(second, verbs.RemoteRead)
			return wire.Header{Reads: append(reads(two, b), reads(position, a)...)}, inline
		}},
		{"with roundup", func() (wire.Header, []byte) {
			a, b := p.lend(stream[position:][:44], verbs.RemoteRead), p.lend(stream[two:][:3004], verbs.RemoteRead)
			return wire.Header{Reads: append(reads(position, a.Cut(0, 41), a.Cut(41, 3)), reads(two, b)...)}, inline
		}},
		{"one by one octets", func() (wire.Header, []byte) {
			a, b := p.lend(first, verbs.RemoteRead), p.lend(second, verbs.RemoteRead)
			list := reads(two, b)
			for i := range first {
				list = append(list, reads(position, a.Cut(i, 1))...)
			}
			return wire.Header{Reads: list}, inline
		}},
		{"long call", func() (wire.Header, []byte) {
			return wire.Header{Proc: wire.ProcNoMsg, Reads: reads(0, segments(p.lend(stream, verbs.RemoteRead), 3, 1000, len(stream)-1003)...)}, nil
		}},
		{"long call and a chunk, each of 16 segments", func() (wire.Header, []byte) {
			rest := without(stream, two, 3004)
			a, b := p.lend(rest, verbs.RemoteRead), p.lend(second, verbs.RemoteRead)
			lengths := make([]int, 16)
			for i := range lengths {
				lengths[i] = 5
			}
			lengths[15] = len(rest) - 75
			list := reads(0, segments(a, lengths...)...)
			for i := range lengths {
				lengths[i] = 150
			}
			lengths[15] = 3001 - 15*150
			return wire.Header{Proc: wire.ProcNoMsg, Reads: append(list, reads(two, segments(b, lengths...)...)...)}, nil
		}},
		{"segments of no octets", func() (wire.Header, []byte) {
			a := p.lend(first, verbs.RemoteRead)
			return wire.Header{Reads: reads(position, segments(a, 0, 41, 0)...)}, without(stream, position, 44)
		}},
	} {
		// Memory that was used before is not clean.
		p.send(wire.Header{XID: 9, Proc: wire.ProcNoMsg, Reads: reads(0, p.lend(bytes.Repeat([]byte{0, 0, 0, 9, 255}, 800), verbs.RemoteRead))})
		p.next()
		h, body := c.call()
		h.XID = 9
		p.send(h, body)
		if m := p.next(); m.Proc != wire.ProcMsg || !bytes.Equal(m.payload, want) {
			t.Errorf("%s: got %v %x, want %x", c.name, m.Proc, m.payload, want)
		}
		if !bytes.Equal(got, stream) {
			t.Errorf("%s: the handler got %x, want %x", c.name, got, stream)
		}
	}
}

// Claims: P-8-1
func TestACallThatComesTwiceIsExecutedOnce(t *testing.T) {
	nettest.CheckLeaks(t)
	entered, leave := make(chan struct{}, 10), make(chan struct{})
	handler := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Proc == 2 {
			entered <- struct{}{}
			<-leave
		}
		e := r.Accept(0)
		return e.Finish()
	})
	p := serve(t, ServerConfig{Handler: handler}).full()
	p.send(wire.Header{XID: 2}, callMessage(2, 2, nil))
	nettest.Await(t, entered)
	p.send(wire.Header{XID: 2}, callMessage(2, 2, nil))
	p.alive()
	close(leave)
	if m := p.next(); m.XID != 2 {
		t.Errorf("got %+v", m)
	}
	p.alive()
	if len(entered) != 0 {
		t.Error("it was executed again")
	}
	// When it has been answered its XID is free.
	p.send(wire.Header{XID: 2}, callMessage(2, 2, nil))
	if m := p.next(); m.XID != 2 {
		t.Errorf("got %+v", m)
	}
}

// Claims: P-3.3-2 P-3.3-14 P-5-1 P-6-2 P8166-3.3.1-7
func TestEveryGrantIsBackedByReceives(t *testing.T) {
	nettest.CheckLeaks(t)
	const credits = 5
	g := newGate()
	p := serve(t, ServerConfig{Credits: credits, Handler: g}).full()
	p.send(wire.Header{XID: 1}, nullCall(1))
	if m := p.next(); m.Credits != credits {
		t.Fatalf("%d credits, want %d", m.Credits, credits)
	}
	// As many calls as there are receives, none of which is free before its
	// reply. They get their replies all the same.
	calls := map[uint32]bool{}
	for xid := range uint32(credits + receiveSlack) {
		calls[xid] = true
		p.send(wire.Header{XID: xid}, callMessage(xid, 2, nil))
		within(t, "call", g.entered)
	}
	close(g.leave)
	for range credits + receiveSlack {
		m := p.next()
		if m.Credits != credits || !calls[m.XID] {
			t.Errorf("got %+v", m.Header)
		}
		delete(calls, m.XID)
	}
	// The full window, again and again, each call sent the moment a reply has
	// granted it.
	for sent, replied := 0, 0; replied < 300; replied++ {
		for ; sent < 300 && sent-replied < credits; sent++ {
			p.send(wire.Header{XID: uint32(sent)}, nullCall(uint32(sent)))
		}
		if m := p.next(); m.Credits != credits {
			t.Fatalf("%d credits, want %d", m.Credits, credits)
		}
	}
}

// Claims: P-6.1-3 P8166-3.3.3-5
func TestServerTakesMessagesAsLongAsItIsTold(t *testing.T) {
	nettest.CheckLeaks(t)
	p := serve(t, ServerConfig{ReceiveSize: 36 << 10}).connect(nil, verbs.QPConfig{IRD: 8, ORD: 8})
	fixed := len(onWire(wire.Header{}, exchangeMessage(0, "abcd", [][]byte{{}}, 4)))
	item := exchange.Pattern(5, 36<<10-fixed)
	long := onWire(wire.Header{XID: 6}, exchangeMessage(6, "abcd", [][]byte{item}, 4))
	if len(long) != 36<<10 {
		t.Fatalf("a message of %d octets", len(long))
	}
	mr := must(p.pd.Register(long, verbs.LocalRead))(t)
	if err := p.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{mr.SGE(0, len(long))}}); err != nil {
		t.Fatal(err)
	}
	if m, want := p.next(), exchange.Reply(6, "abcd", item[:4]); !bytes.Equal(m.payload, want) {
		t.Errorf("got %+v %x, want %x", m.Header, m.payload, want)
	}
}

func TestAReplyWhoseHeaderIsTooLongIsRefused(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, read := range []bool{false, true} { // and not read either, whose header is longer
		p := serve(t, ServerConfig{ReadReplies: ReadReplies{Enabled: read}}).connect(nil, verbs.QPConfig{IRD: 8, ORD: 8})
		sink := make([]byte, 8000)
		mem := p.lend(sink, verbs.RemoteWrite)
		lengths := make([]int, 80) // 1280 octets to be repeated, and the peer takes 1024
		for i := range lengths {
			lengths[i] = 100
		}
		for _, n := range []int{10, 3000} {
			p.send(wire.Header{XID: 1, HasReply: true, Reply: segments(mem, lengths...)}, exchangeMessage(1, "abcd", nil, n))
			if m := p.next(); m.Proc != wire.ProcError || m.Err != wire.ErrChunk {
				t.Errorf("result of %d octets: got %v of %d octets", n, m.Proc, m.wc.Bytes)
			}
		}
		if !bytes.Equal(sink, make([]byte, len(sink))) {
			t.Error("something was placed")
		}
	}
}

// Claims: P8166-8.2.2.3-1
func TestProtectedResultsStayInTheirStream(t *testing.T) {
	nettest.CheckLeaks(t)
	p := serve(t, ServerConfig{}).full()
	mem := p.lend(make([]byte, 100), verbs.RemoteWrite)
	for service, want := range map[byte]uint32{1: 100, 2: 0, 3: 0} { // none, integrity, privacy
		call := oncrpc.Call{XID: 1, Prog: exchange.Program, Vers: exchange.Version, Proc: exchange.Proc}
		call.Cred = oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS, Body: []byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, service, 0, 0, 0, 0}}
		b, _ := call.Append(nil)
		p.send(wire.Header{XID: 1, Writes: []wire.WriteChunk{{mem}}}, b, exchangeMessage(1, "abcd", nil, 100)[40:])
		m := p.next()
		if got := m.Writes[0][0].Length; got != want {
			t.Errorf("service %d: %d octets were placed, want %d", service, got, want)
		}
		if want == 0 && !bytes.Equal(m.payload, exchange.Reply(1, "abcd", exchangeResult(nil, 100))) {
			t.Errorf("service %d: got %x", service, m.payload)
		}
		mem = p.lend(make([]byte, 100), verbs.RemoteWrite)
	}
}
