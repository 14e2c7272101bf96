package rpcrdma

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// Claims: P-2-2 P-3.1-1 P-3.3-6 P-3.4-9 P-4.1-6 P8166-4.3.2.3-1
func TestServerAnswersShortCallsInline(t *testing.T) {
	nettest.CheckLeaks(t)
	p := serve(t, ServerConfig{}).full()
	p.send(wire.Header{XID: 5}, nullCall(5))
	m := p.next()
	if m.XID != 5 || m.Proc != wire.ProcMsg || m.Credits != DefaultCredits || m.wc.Bytes != 52 || m.HasReply || len(m.Writes) > 0 {
		t.Errorf("got %+v", m)
	}
	p.send(wire.Header{XID: 6}, exchangeMessage(6, "tag", [][]byte{[]byte("hello")}, 9))
	if m, want := p.next(), exchange.Reply(6, "tag", exchangeResult([][]byte{[]byte("hello")}, 9)); !bytes.Equal(m.payload, want) {
		t.Errorf("got %x, want %x", m.payload, want)
	}
}

// position is where the data of the first item of EXCHANGE with a tag of four
// octets are.
const position = 40 + 8 + 4 + 4

// Claims: P-3.4-6 P-3.5-2 P-3.8-1 P8797-4.1-1
// Claims: P-3.8-4
func TestServerFetchesWhatWasReduced(t *testing.T) {
	nettest.CheckLeaks(t)
	p := serve(t, ServerConfig{}).full()
	item := exchange.Pattern(1, 10001)
	mem := p.lend(bytes.Clone(item), verbs.RemoteRead)
	stream := exchangeMessage(7, "abcd", [][]byte{item}, 100)
	p.send(wire.Header{XID: 7, Reads: reads(position, segments(mem, 4096, 4096, 1809)...)}, without(stream, position, 10004))
	m := p.next()
	if want := exchange.Reply(7, "abcd", item[:100]); !bytes.Equal(m.payload, want) {
		t.Errorf("got %x, want %x", m.payload, want)
	}
	if !m.wc.HasInvalidated || uint32(m.wc.Invalidated) != mem.Handle {
		t.Errorf("the reply invalidated %v %#x, want %#x", m.wc.HasInvalidated, m.wc.Invalidated, mem.Handle)
	}
}

// Claims: P-3.4-8 P-3.6-1 P-3.6-2 P-3.6-5 P-3.8-1 P8166-3.4.6.2-3 P8166-3.4.6-3
// Claims: P-3.8-3
func TestServerPlacesResults(t *testing.T) {
	nettest.CheckLeaks(t)
	p := serve(t, ServerConfig{}).full()
	sink := make([]byte, 9000)
	mem := p.lend(sink, verbs.RemoteWrite)
	p.send(wire.Header{XID: 8, Writes: []wire.WriteChunk{segments(mem, 4096, 4904)}}, exchangeMessage(8, "abcd", nil, 5001))
	m := p.next()
	if want := without(exchange.Reply(8, "abcd", exchangeResult(nil, 5001)), 24+12, 5004); !bytes.Equal(m.payload, want) {
		t.Errorf("got %x, want %x", m.payload, want)
	}
	if len(m.Writes) != 1 || m.Writes[0][0].Length != 4096 || m.Writes[0][1].Length != 905 {
		t.Errorf("chunks came back as %+v", m.Writes)
	}
	if !bytes.Equal(sink[:5001], exchangeResult(nil, 5001)) || sink[5001] != 0 {
		t.Error("what was placed is not the result")
	}
}

// Claims: P-5.2-3 P8166-3.5.3-3 P8166-3.5.3-6 P8166-3.5.3-7 P8166-4.3.3-3 P8166-4.3.3-4
func TestServerRepliesByReplyChunk(t *testing.T) {
	nettest.CheckLeaks(t)
	p := serve(t, ServerConfig{}).full()
	sink := make([]byte, 20000)
	mem := p.lend(sink, verbs.RemoteWrite)
	for _, n := range []int{10, 6000} {
		p.send(wire.Header{XID: 9, HasReply: true, Reply: segments(mem, 4096, 15904)}, exchangeMessage(9, "abcd", nil, n))
		m := p.next()
		want := exchange.Reply(9, "abcd", exchangeResult(nil, n))
		got := m.payload
		if n > 4096 {
			if m.Proc != wire.ProcNoMsg || m.Reply.Length() != uint64(len(want)) {
				t.Fatalf("got %+v", m.Header)
			}
			got = sink[:len(want)]
		} else if m.Proc != wire.ProcMsg || !m.HasReply || len(m.Reply) != 2 || m.Reply.Length() != 0 {
			t.Errorf("got %+v", m.Header)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%d: got %x, want %x", n, got, want)
		}
		mem = p.lend(sink, verbs.RemoteWrite)
	}
}
