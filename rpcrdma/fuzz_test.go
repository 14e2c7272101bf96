package rpcrdma

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// Handles in fuzzed messages that stand for memory of the peer.
const (
	fuzzReadable = 0xfeed0001
	fuzzWritable = 0xfeed0002
	fuzzBase     = 0x10000 // what lend has for an address
	fuzzMemory   = 1024    // octets of each
	fuzzMessages = 16      // at most
	fuzzLast     = 0x1a57ca11
)

// plant puts the STags of lent memory where a fuzzed message has words for them.
func plant(b []byte, readable, writable wire.Segment) {
	for at := 0; at+4 <= len(b); at += 4 {
		switch binary.BigEndian.Uint32(b[at:]) {
		case fuzzReadable:
			binary.BigEndian.PutUint32(b[at:], readable.Handle)
		case fuzzWritable:
			binary.BigEndian.PutUint32(b[at:], writable.Handle)
		}
	}
}

// FuzzServer feeds any messages to a whole server over a real stack, from a peer that has
// memory for it to read and to write. The server sends nothing that cannot be parsed,
// writes to no memory that was exposed for reading, serves the peer until its connection
// ends, and another one after it. Nothing is left then.
func FuzzServer(f *testing.F) {
	add := func(old bool, messages ...[]byte) {
		var in []byte
		for _, m := range messages {
			in = append(binary.BigEndian.AppendUint16(in, uint16(len(m))), m...)
		}
		f.Add(in, old)
	}
	readable := wire.Segment{Handle: fuzzReadable, Length: fuzzMemory, Offset: fuzzBase}
	writable := wire.Segment{Handle: fuzzWritable, Length: fuzzMemory, Offset: fuzzBase}
	item := exchange.Pattern(1, 100)
	stream := exchangeMessage(1, "abcd", [][]byte{item}, 200)
	reduced := without(stream, position, 100)
	for _, old := range []bool{false, true} {
		add(old, onWire(wire.Header{XID: 1, Credits: 8}, nullCall(1)), onWire(wire.Header{XID: 2, Credits: 8}, stream))
		add(old, onWire(wire.Header{XID: 1, Credits: 1, Reads: reads(position, readable.Cut(0, 100))}, reduced))
		add(old, onWire(wire.Header{XID: 1, Credits: 1, Reads: reads(position, segments(readable, 10, 20, 70)...), Writes: []wire.WriteChunk{{writable}}}, reduced))
		add(old, onWire(wire.Header{XID: 1, Credits: 1, Proc: wire.ProcNoMsg, Reads: reads(0, readable.Cut(0, len(stream))), Reply: wire.WriteChunk(segments(writable, 100, 200))}))
		add(old, onWire(wire.Header{XID: 1, Credits: 1, Reply: wire.WriteChunk{writable}, Writes: []wire.WriteChunk{{readable}}}, stream))
		add(old, wire.AppendDone(nil, 1, 1), wire.AppendErrChunk(nil, 2, 1), wire.AppendErrVers(nil, 3, 1, 1))
		add(old, onWire(wire.Header{XID: 1, Credits: 0, Reads: reads(position, readable)}, reduced), onWire(wire.Header{XID: 1, Credits: 9}, nullCall(1)))
		add(old, onWire(wire.Header{XID: 1, Proc: wire.ProcMsgP}, nullCall(1)), nil, []byte{0, 0, 0, 1})
		add(old, onWire(wire.Header{XID: 1, Writes: []wire.WriteChunk{{writable.Cut(0, 100)}, {writable.Cut(100, 0)}, nil}}, stream))
	}
	f.Fuzz(func(t *testing.T, in []byte, old bool) {
		if len(in) > 1<<13 || bytes.Contains(in, binary.BigEndian.AppendUint32(nil, fuzzLast)) {
			return
		}
		nettest.CheckLeaks(t)
		cfg := ServerConfig{}
		if old {
			cfg = ServerConfig{Rules: wire.Rules{MSGP: true}, ReadReplies: ReadReplies{Enabled: true}}
		}
		s := serve(t, cfg)
		p := s.full()
		source, sink := exchange.Pattern(9, fuzzMemory), make([]byte, fuzzMemory)
		readable, writable := p.lend(source, memory.RemoteRead), p.lend(sink, memory.RemoteWrite)
		for range fuzzMessages {
			if len(in) < 2 {
				break
			}
			n := min(int(binary.BigEndian.Uint16(in)), len(in)-2, peerSize)
			m := bytes.Clone(in[2 : 2+n])
			in = in[2+n:]
			plant(m, readable, writable)
			if !p.try(m) {
				break
			}
		}
		p.try(onWire(wire.Header{XID: fuzzLast, Credits: 32}, nullCall(fuzzLast)))
		for {
			m, ok := p.nextOrEnd()
			if !ok || m.XID == fuzzLast {
				break
			}
		}
		if !bytes.Equal(source, exchange.Pattern(9, fuzzMemory)) {
			t.Error("memory that was lent for reading has changed")
		}
		s.full().alive()
	})
}

// try sends octets, and reports whether that could be begun.
func (p *testPeer) try(b []byte) bool {
	at := p.sent % peerReceives * peerSize
	p.sent++
	copy(p.out[at:][:peerSize], b)
	return p.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{p.outMR.SGE(at, len(b))}}) == nil
}
