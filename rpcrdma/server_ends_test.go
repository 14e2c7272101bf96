package rpcrdma

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A call whose memory the server cannot use ends the connection, as RDMA has it.
// Sent again over the next one it is answered, so that it does not end that one,
// too.
//
// Claims: P8166-4.5.3-2
func TestACallThatBreaksTheConnectionIsAnsweredOnTheNext(t *testing.T) {
	item := exchange.Pattern(1, 8000)
	for _, c := range []struct {
		name string
		call func(xid uint32, s wire.Segment) []byte
	}{
		{"Read of an STag that does not exist", func(xid uint32, s wire.Segment) []byte {
			s.Handle ^= 0xff00
			return onWire(wire.Header{XID: xid, Reads: reads(position, s)}, without(exchangeMessage(xid, "abcd", [][]byte{item}), position, 8000))
		}},
		{"Read beyond the region", func(xid uint32, s wire.Segment) []byte {
			s.Offset += 4
			return onWire(wire.Header{XID: xid, Reads: reads(position, s)}, without(exchangeMessage(xid, "abcd", [][]byte{item}), position, 8000))
		}},
		{"Write to an STag that does not exist", func(xid uint32, s wire.Segment) []byte {
			s.Handle ^= 0xff00
			return onWire(wire.Header{XID: xid, Writes: []wire.WriteChunk{{s}}}, exchangeMessage(xid, "abcd", nil, 8000))
		}},
		{"Write without the right", func(xid uint32, s wire.Segment) []byte {
			return onWire(wire.Header{XID: xid, Writes: []wire.WriteChunk{{s}}}, exchangeMessage(xid, "abcd", nil, 8000))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			s := serve(t, ServerConfig{})
			others := s.connectTCP()
			for i := range 3 {
				p := s.connectTCP()
				p.raw(c.call(77, p.lend(bytes.Clone(item), verbs.RemoteRead)))
				if m, ok := p.nextOrEnd(); i == 1 {
					// The RNIC may have reported the end before it has said which
					// call was at fault, but not here.
					if !ok || m.Proc != wire.ProcError || m.Err != wire.ErrChunk {
						t.Fatalf("sent again: got %+v, want ERR_CHUNK", m)
					}
					p.alive()
				} else if err := p.end(); ok && m.Proc != wire.ProcMsg || err == nil {
					t.Errorf("got %+v, want the connection to end", m)
				}
			}
			others.alive()
		})
	}
}

// connectTCP connects a full peer over loopback.
func (s *serving) connectTCP() *testPeer {
	a, b := nettest.TCPPair(s.t, "tcp4")
	return s.connectOver(a, b, &wire.PrivateData{RemoteInvalidation: true, SendSize: 4096, ReceiveSize: 4096}, verbs.QPConfig{IRD: 8, ORD: 8})
}

// Claims: P-3.3-1 P-3.3-11 P-3.3-12 P-11-4 P8166-3.3-1 P8166-8.1-1
func TestWhoIgnoresCreditsLosesHisConnectionAlone(t *testing.T) {
	nettest.CheckLeaks(t)
	block, entered := make(chan struct{}), make(chan struct{}, 100)
	handler := oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Proc == 2 {
			entered <- struct{}{}
			select {
			case <-block:
			case <-ctx.Done():
			}
		}
		e := r.Accept(0)
		return e.Finish()
	})
	s := serve(t, ServerConfig{Handler: handler, Credits: 4})
	good, bad := s.full(), s.full()
	for i := range 4 + receiveSlack {
		// Calls beyond the grant are served as long as there is a receive.
		bad.send(wire.Header{XID: uint32(i + 1)}, callMessage(uint32(i+1), 2, nil))
		nettest.Await(t, entered)
	}
	good.alive()
	bad.send(wire.Header{XID: 100}, callMessage(100, 2, nil))
	if err := bad.end(); err == nil {
		t.Error("the connection ended without an error")
	}
	for alive := true; alive; { // replies that were cut short have not come
		_, alive = bad.nextOrEnd()
	}
	var told *rdmap.TerminateError
	if err := bad.qp.Err(); !errors.As(err, &told) || !told.Remote {
		t.Errorf("the peer was not told why: %v", err)
	}
	good.alive()
	close(block)
}

// Claims: P-6-1 P8166-3.3-1 P8166-3.3.3-1 P8166-3.3.3-4
func TestAMessageLongerThanItsReceiveEndsTheConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	s := serve(t, ServerConfig{ReceiveSize: 500}) // 1024 octets are the least
	p, other := s.full(), s.full()
	fixed := len(onWire(wire.Header{XID: 6}, exchangeMessage(6, "abcd", [][]byte{{}}, 4)))
	item := exchange.Pattern(5, wire.MinThreshold-fixed)
	p.send(wire.Header{XID: 6}, exchangeMessage(6, "abcd", [][]byte{item}, 4))
	if m, want := p.next(), exchange.Reply(6, "abcd", item[:4]); !bytes.Equal(m.payload, want) {
		t.Errorf("got %x, want %x", m.payload, want)
	}
	p.raw(make([]byte, 1025))
	if err := p.end(); err == nil {
		t.Error("the connection ended without an error")
	}
	other.alive()
}

// A connection that ends after any octet of an exchange leaves nothing behind:
// serving.close checks that.
//
// Claims: P8166-8.1-1
func TestAConnectionCutAnywhereLeavesNothing(t *testing.T) {
	nettest.CheckLeaks(t)
	item := exchange.Pattern(3, 600)
	// exchange does all kinds of calls, as far as the connection lets it, and
	// counts the messages that came.
	exchange := func(p *testPeer) (replies int) {
		mem := p.lend(bytes.Clone(item), verbs.RemoteRead)
		p.send(wire.Header{XID: 1}, nullCall(1))
		p.send(wire.Header{XID: 2, Reads: reads(position, segments(mem, 300, 300)...)}, without(exchangeMessage(2, "abcd", [][]byte{item}, 20), position, 600))
		long := exchangeMessage(3, "abcd", nil, 20)
		p.send(wire.Header{XID: 3, Proc: wire.ProcNoMsg, Reads: reads(0, p.lend(long, verbs.RemoteRead))})
		sink := p.lend(make([]byte, 600), verbs.RemoteWrite)
		p.send(wire.Header{XID: 4, Writes: []wire.WriteChunk{segments(sink, 300, 300)}}, exchangeMessage(4, "abcd", nil, 500))
		p.send(wire.Header{XID: 5, HasReply: true, Reply: wire.WriteChunk{p.lend(make([]byte, 3000), verbs.RemoteWrite)}}, exchangeMessage(5, "abcd", nil, 2000))
		for range 5 {
			if _, ok := p.nextOrEnd(); !ok {
				break
			}
			replies++
		}
		return replies
	}
	// The peer takes 1024 octets, so that the last reply is long.
	private := &wire.PrivateData{SendSize: 4096, ReceiveSize: 1024}
	s := serve(t, ServerConfig{SendSize: 1024})
	a, b := iwarptest.BufferedPipe(1 << 20)
	p := s.connectOver(a, b, private, verbs.QPConfig{IRD: 8, ORD: 8})
	if n := exchange(p); n != 5 {
		t.Fatalf("%d replies, want 5", n)
	}
	sent := [2]uint64{a.Written(), b.Written()}
	step := uint64(3)
	if testing.Short() {
		step = 17
	}
	for side, octets := range sent {
		for n := uint64(60); n < octets; n += step { // behind the start-up
			a, b := iwarptest.BufferedPipe(1 << 20)
			if end := [2]*iwarptest.Conn{a, b}[side]; n%2 == 0 {
				end.ResetAfter(n)
			} else {
				end.FinAfter(n)
			}
			p := s.connectOver(a, b, private, verbs.QPConfig{IRD: 8, ORD: 8})
			exchange(p)
			_ = p.qp.Destroy()
			_ = p.end()
			_ = p.rnic.Close()
		}
	}
	if u := s.rnic.Usage(); u.QPs != 1 || u.CQs != 1 {
		t.Errorf("left: %+v", u)
	}
}
