package rpcrdma

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// patched is b with a word replaced.
func patched(b []byte, at int, v uint32) []byte {
	b = bytes.Clone(b)
	binary.BigEndian.PutUint32(b[at:], v)
	return b
}

// onWire is a header and what follows it.
func onWire(h wire.Header, payload ...[]byte) []byte {
	return append(h.Append(nil), bytes.Join(payload, nil)...)
}

// Every message that is wrong by its form, or asks for what cannot be, has its
// answer or none. The connection lives on, and nothing is placed.
//
// Claims: P-3.4-14 P-3.4-15 P-4.1-13 P-4.1-14 P-4.1-18 P-4.1-19 P-4.2-1 P-4.2-2 P-4.2-4 P-4.2-5 P-4.2-6 P-4.2-7 P-5.2-4 P5667-3-2
// Claims: P8166-3.4.4.1-2 P8166-3.4.5-2 P8166-4.2.4-2 P8166-4.2.4-4 P8166-4.3.1-1 P8166-4.5-1 P8166-4.5.1-1 P8166-4.5-2 P8166-4.5.2-1
// Claims: P8166-4.5.2-2 P8166-4.5.3-1 P8166-4.5-4 P8166-4.5-5 P8166-4.5-6 P8166-4.6.1-2 P8166-4.6.2-2 P8166-6-1 P8166-6.1-3 P8166-6.1-4
// Claims: P8166-8.2.2.3-1 P8267-3-1 P8267-3.1-3 P8267-6.4.2-3
func TestServerAnswersWhatIsWrong(t *testing.T) {
	const xid = 0x1234
	null := nullCall(xid)
	item := exchange.Pattern(1, 100)
	stream := exchangeMessage(xid, "abcd", [][]byte{item}, 4)
	reduced := without(stream, position, 100)
	odd := exchangeMessage(xid, "abcd", [][]byte{item[:97]}, 4)
	big := exchangeMessage(xid, "abcd", nil, 8000)
	gss := oncrpc.Call{XID: xid, Prog: exchange.Program, Vers: exchange.Version, Proc: exchange.Proc,
		Cred: oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorGSS, Body: make([]byte, 20)}}
	gssCall, _ := gss.Append(nil)
	other := oncrpc.Call{XID: xid, Prog: exchange.Program, Vers: 9}
	otherCall, _ := other.Append(nil)

	const ( // answers
		none = iota
		errVers
		errChunk
		garbage
		denied
		mismatch
		unavailable
	)
	for _, c := range []struct {
		name    string
		message func(mem wire.Segment) []byte // mem has 256 octets, readable and writable; the first 100 are item
		want    int
	}{
		{"nothing", func(wire.Segment) []byte { return nil }, none},
		{"less than the fixed words", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid})[:15] }, none},
		{"RDMA_MSG of less than 28 octets", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid})[:27] }, none},
		{"RDMA_NOMSG of less than 28 octets", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid, Proc: wire.ProcNoMsg})[:24] }, none},
		{"unknown type of less than 28 octets", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid, Proc: 5})[:20] }, none},
		{"RDMA_MSGP of less than 36 octets", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid, Proc: wire.ProcMsgP})[:32] }, none},
		{"RDMA_ERROR", func(wire.Segment) []byte { return wire.AppendErrChunk(nil, xid, 1) }, none},
		{"RDMA_ERROR of another version", func(wire.Segment) []byte { return wire.AppendErrVers(nil, xid, 2, 1) }, none},
		{"RDMA_ERROR cut off", func(wire.Segment) []byte { return wire.AppendErrVers(nil, xid, 1, 1)[:18] }, none},
		{"RDMA_DONE for nothing", func(wire.Segment) []byte { return wire.AppendDone(nil, xid, 1) }, none},
		{"reply to nobody", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, exchange.Reply(xid, "")) }, none},

		{"version 2", func(wire.Segment) []byte { return patched(onWire(wire.Header{XID: xid}, null), 4, 2) }, errVers},
		{"version 0 with nothing else", func(wire.Segment) []byte { return patched(onWire(wire.Header{XID: xid}), 4, 0) }, errVers},

		{"unknown type", func(wire.Segment) []byte { return patched(onWire(wire.Header{XID: xid}, null), 12, 5) }, errChunk},
		{"RDMA_MSGP", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid, Proc: wire.ProcMsgP}, null) }, errChunk},
		{"Read list that does not end", func(wire.Segment) []byte { return patched(onWire(wire.Header{XID: xid}, null), 16, 1) }, errChunk},
		{"Read list with a boolean of 2", func(wire.Segment) []byte { return patched(onWire(wire.Header{XID: xid}, null), 16, 2) }, errChunk},
		{"Write chunk with more segments than octets", func(s wire.Segment) []byte {
			return patched(onWire(wire.Header{XID: xid, Writes: []wire.WriteChunk{{s}}}, null), 24, 1<<31)
		}, errChunk},
		{"no RPC message", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}) }, errChunk},
		{"other XID in the RPC message", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, nullCall(xid+1)) }, errChunk},
		{"position that is no multiple of 4", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position+2, s.Cut(0, 100))}, reduced)
		}, errChunk},
		{"too many segments", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position, segments(s, make([]int, 9)...)...)}, reduced)
		}, errChunk},
		{"too many Read chunks", func(s wire.Segment) []byte {
			var list []wire.ReadSegment
			for i := range 5 {
				list = append(list, reads(position+4*i, s.Cut(0, 4))...)
			}
			return onWire(wire.Header{XID: xid, Reads: list}, reduced)
		}, errChunk},
		{"too many Write chunks", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Writes: []wire.WriteChunk{{}, {}, {}, {}, {}}}, null)
		}, errChunk},
		{"Read list of too many octets", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position, wire.Segment{Handle: s.Handle, Length: 1 << 16, Offset: s.Offset}, wire.Segment{Handle: s.Handle, Length: 1<<32 - 1, Offset: s.Offset})}, reduced)
		}, errChunk},
		{"segment that wraps", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position, wire.Segment{Handle: s.Handle, Length: 100, Offset: 1<<64 - 50})}, reduced)
		}, errChunk},
		{"position zero in an RDMA_MSG", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(0, s.Cut(0, 100))}, reduced)
		}, errChunk},
		{"RDMA_NOMSG without chunks", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid, Proc: wire.ProcNoMsg}) }, errChunk},
		{"RDMA_NOMSG with a Reply chunk alone", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Proc: wire.ProcNoMsg, HasReply: true, Reply: wire.WriteChunk{s}})
		}, errChunk},
		{"RDMA_NOMSG without position zero", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Proc: wire.ProcNoMsg, Reads: reads(4, s)})
		}, errChunk},
		{"long call of another XID", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Proc: wire.ProcNoMsg, Reads: reads(0, s)})
		}, errChunk},
		{"long call of three octets", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Proc: wire.ProcNoMsg, Reads: reads(0, s.Cut(0, 3))})
		}, errChunk},

		{"RPC header cut off", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, null[:36]) }, garbage},
		{"arguments cut off", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, stream[:len(stream)-4]) }, garbage},
		{"chunk beyond the end", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(len(stream)+4, s.Cut(0, 100))}, reduced)
		}, garbage},
		{"chunk within another", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: append(reads(position, s.Cut(0, 100)), reads(position+50/4*4, s.Cut(0, 4))...)}, reduced)
		}, garbage},
		{"chunk shorter than its count", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position, s.Cut(0, 96))}, reduced)
		}, garbage},
		{"chunk longer than its count", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position, s.Cut(0, 104))}, reduced)
		}, garbage},
		{"chunk that ends within its roundup", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position, s.Cut(0, 98))}, without(odd, position, 100))
		}, garbage},
		{"item reduced that may not be", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(44, s.Cut(0, 4))}, without(stream, 44, 4))
		}, garbage},
		{"part of an item reduced", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position+4, s.Cut(4, 96))}, without(stream, position+4, 96))
		}, garbage},
		{"protected arguments reduced", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(len(gssCall)+16, s.Cut(0, 100))}, gssCall, without(stream[40:], 16, 100))
		}, garbage},
		{"arguments of a program without binding reduced", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Reads: reads(position, s.Cut(0, 100))}, patched(reduced, 12, 99))
		}, garbage},

		{"RPC version 3", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, patched(null, 8, 3)) }, denied},
		{"program version 9", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, otherCall) }, mismatch},
		{"unknown program", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, patched(null, 12, 99)) }, unavailable},

		{"reply that fits nowhere", func(wire.Segment) []byte { return onWire(wire.Header{XID: xid}, big) }, errChunk},
		{"reply longer than the Reply chunk", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, HasReply: true, Reply: wire.WriteChunk{s}}, big)
		}, errChunk},
		{"result longer than the Write chunk", func(s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Writes: []wire.WriteChunk{{s.Cut(0, 99)}}}, exchangeMessage(xid, "abcd", nil, 100))
		}, errChunk},
	} {
		t.Run(c.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			p := serve(t, ServerConfig{Rules: wire.Rules{Segments: 8, Chunks: 4, Octets: 1 << 20}}).full()
			buf := append(bytes.Clone(item), make([]byte, 156)...)
			was := bytes.Clone(buf)
			p.raw(c.message(p.lend(buf, verbs.RemoteRead|verbs.RemoteWrite)))
			if c.want == none {
				p.alive()
				return
			}
			m := p.next()
			var r oncrpc.Reply
			if m.XID != xid || m.wc.HasInvalidated && m.Proc == wire.ProcError {
				t.Errorf("got %+v", m)
			}
			if m.Proc == wire.ProcMsg {
				if _, err := r.Parse(m.payload); err != nil || r.XID != xid {
					t.Fatalf("reply %x: %v", m.payload, err)
				}
			}
			ok := false
			switch c.want {
			case errVers:
				ok = m.Proc == wire.ProcError && m.Err == wire.ErrVers && m.Low == 1 && m.High == 1 && m.Version != 1 && m.wc.Bytes == 28
			case errChunk:
				ok = m.Proc == wire.ProcError && m.Err == wire.ErrChunk && m.Version == 1 && m.wc.Bytes == 20
			case garbage:
				ok = m.Proc == wire.ProcMsg && r.Stat == oncrpc.MsgAccepted && r.Accept == oncrpc.GarbageArgs
			case denied:
				ok = m.Proc == wire.ProcMsg && r.Stat == oncrpc.MsgDenied && r.Reject == oncrpc.RPCMismatch && r.Low == 2 && r.High == 2
			case mismatch:
				ok = m.Proc == wire.ProcMsg && r.Accept == oncrpc.ProgMismatch && r.Low == 1 && r.High == 1
			case unavailable:
				ok = m.Proc == wire.ProcMsg && r.Accept == oncrpc.ProgUnavail
			}
			if !ok {
				t.Errorf("got %+v", m)
			}
			p.alive()
			if !bytes.Equal(buf, was) {
				t.Error("something was placed")
			}
		})
	}
}
