package rpcrdma

import (
	"bytes"
	"encoding/binary"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A client that serves one RDMA Read at a time is asked for all chunks of a call, one
// after the other.
//
// Claims: P-3.3-16
// Claims: P-6.2-11
func TestManyChunksAreFetchedFromAPeerThatServesOneRead(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{})
	p := s.connect(&wire.PrivateData{SendSize: 4096, ReceiveSize: 4096}, verbs.QPConfig{IRD: 1, ORD: 1})
	item := exchange.Pattern(1, 8000)
	mem := p.lend(item, verbs.RemoteRead)
	lengths := make([]int, 40)
	for i := range lengths {
		lengths[i] = len(item) / len(lengths)
	}
	stream := exchangeMessage(3, "abcd", [][]byte{item}, 8)
	p.send(wire.Header{XID: 3, Reads: reads(position, segments(mem, lengths...)...)}, without(stream, position, len(item)))
	if m := p.next(); m.Proc != wire.ProcMsg || !bytes.Equal(m.payload, exchange.Reply(3, "abcd", exchangeResult([][]byte{item}, 8))) {
		t.Errorf("got %v % x", m.Proc, m.payload)
	}
}

// A client that says by CONF_RDMA how many RDMA Reads it serves at a time is never asked
// for more, whatever the connection would allow.
//
// Claims: P-6.2-10
// Claims: P-6.2-9
func TestNoMoreReadsAreOutstandingThanThePeerServes(t *testing.T) {
	const most, chunks = 2, 9
	synctest.Test(t, func(t *testing.T) {
		everybody := func(*oncrpc.Call) bool { return true }
		s := serve(t, ServerConfig{Configure: &Configurator{Allow: everybody}})
		p, _ := s.byHandWith(1<<20, []byte{0, 8, 0, 8}) // IRD and ORD of 8
		send := func(msn uint32, b []byte) {
			t.Helper()
			if err := p.Send(iwarptest.Send(msn, b...)); err != nil {
				t.Fatal(err)
			}
		}
		send(1, confMessage(1, wire.ConfRDMA, wire.ConfCall{MaxCallSendSize: 4096, MaxReplySendSize: 4096, MaxRDMARead: most}.Append(nil)))
		if _, err := p.Next(); err != nil {
			t.Fatal(err)
		}
		h := wire.Header{XID: 2, Proc: wire.ProcNoMsg, Credits: 32}
		for range chunks {
			h.Reads = append(h.Reads, wire.ReadSegment{Position: 0, Segment: wire.Segment{Handle: 0x1100, Length: 4, Offset: 0}})
		}
		send(2, h.Append(nil))
		requests := make(chan []byte, chunks)
		go func() {
			for {
				u, err := p.Next()
				if err != nil {
					close(requests)
					return
				}
				if m, err := iwarptest.Parse(u); err == nil && m.Opcode == 1 {
					requests <- bytes.Clone(u[18:])
				}
			}
		}()
		for answered := range chunks {
			synctest.Wait() // all that the server asks for without an answer is here
			if n, want := len(requests), min(most, chunks-answered); n != want {
				t.Errorf("%d RDMA Reads are outstanding after %d answers, expected %d", n, answered, want)
			}
			q := <-requests // RFC 5040 §4.4: sink STag and Tagged Offset
			if err := p.Send(iwarptest.ReadResponse(binary.BigEndian.Uint32(q), binary.BigEndian.Uint64(q[4:]), 0, 0, 0, 1)); err != nil {
				t.Fatal(err)
			}
			// The next is outstanding in place of it: what was not taken stays so.
		}
		_ = p.Reset()
	})
}
