// Which memory a requester exposes to its peer, and for how long.

package rpcrdma

import (
	"context"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/rpcrdma/internal/exchange"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// Claims: P-3.5-3 P-11-4 P8166-4.4.1-1 P8166-8.1-1 P8166-8.1.3-1 P8166-8.1.3-2 P8166-8.1.4-2 S-6.2.2-2 S-6.3.3-1 V-10.1.2-5
func TestNothingMovesThroughAnSTagOfACallThatHasEnded(t *testing.T) {
	for _, way := range []string{"a reply", "an error", "its context"} {
		for _, list := range []string{"Read", "Write", "Reply"} {
			t.Run(list+" chunk, ended by "+way, func(t *testing.T) {
				nettest.CheckLeaks(t)
				a := answer(t, ClientConfig{}, &both)
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				q := everything()
				ended := a.start(ctx, q)
				p := a.peer()
				m := p.next()
				h := untouched(&m.Header)
				var want error
				switch way {
				case "a reply":
					p.send(h, exchange.Reply(m.XID, "abcd"))
				case "an error":
					p.raw(wire.AppendErrChunk(nil, m.XID, 1))
					want = &wire.RemoteError{Code: wire.ErrChunk}
				default:
					cancel()
					want = context.Canceled
				}
				checkEnded(t, within(t, "end", ended), want)
				err := error(nil)
				switch list {
				case "Read":
					_, err = p.read(m.Reads[0].Segment)
				case "Write":
					err = p.write(m.Writes[0][0], []byte("evil"))
					if err == nil {
						_, err = p.read(wire.Segment{}) // the Write is known to be refused only later
					}
				case "Reply":
					err = p.write(m.Reply[0], []byte("evil"))
					if err == nil {
						_, err = p.read(wire.Segment{})
					}
				}
				if err == nil {
					t.Error("the STag still works")
				}
				if q.Sinks[0][0] != 0 {
					t.Error("a sink was written to")
				}
			})
		}
	}
}

// Memory is exposed with no more rights and no more octets than necessary.
//
// Claims: P-11-4 P8166-8.1-1 V-10.1.2-1 S-6.3.4-1 S-6.3.5-1
func TestMemoryIsLentWithinItsBoundsAndForItsPurpose(t *testing.T) {
	for _, test := range []struct {
		name string
		try  func(p *testPeer, h *wire.Header) error
	}{
		{"writing a Read chunk", func(p *testPeer, h *wire.Header) error { return p.write(h.Reads[0].Segment, []byte("evil")) }},
		{"reading a Write chunk", func(p *testPeer, h *wire.Header) error { _, err := p.read(h.Writes[0][0]); return err }},
		{"reading the Reply chunk", func(p *testPeer, h *wire.Header) error { _, err := p.read(h.Reply[0]); return err }},
		{"reading behind a Read chunk", func(p *testPeer, h *wire.Header) error {
			s := h.Reads[0].Segment
			s.Length++
			_, err := p.read(s)
			return err
		}},
		{"writing behind a Write chunk", func(p *testPeer, h *wire.Header) error {
			s := h.Writes[1][0]
			return p.write(s.Cut(int(s.Length), 1), []byte("e"))
		}},
		{"writing behind the Reply chunk", func(p *testPeer, h *wire.Header) error {
			s := h.Reply[0]
			return p.write(s.Cut(int(s.Length)-3, 4), []byte("evil"))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a := answer(t, ClientConfig{}, &both)
			ended := a.start(t.Context(), everything())
			p := a.peer()
			m := p.next()
			err := test.try(p, &m.Header)
			if err == nil {
				_, err = p.read(wire.Segment{})
			}
			if err == nil {
				t.Error("it was possible")
			}
			// The connection is lost; over the next one the call ends well.
			p = a.peer()
			again := p.next()
			p.send(untouched(&again.Header), exchange.Reply(again.XID, "abcd"))
			checkEnded(t, within(t, "reply", ended), nil)
		})
	}
}

// invalidate sends a message that invalidates an STag of the client's.
func (p *testPeer) invalidate(s uint32, h wire.Header, payload []byte) {
	p.t.Helper()
	h.Credits = 8
	b := append(h.Append(nil), payload...)
	at := p.sent % peerReceives * peerSize
	p.sent++
	copy(p.out[at:], b)
	if err := p.qp.PostSend(verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: memory.STag(s), SGL: []verbs.SGE{p.outMR.SGE(at, len(b))}}); err != nil {
		p.t.Fatal(err)
	}
}

// Claims: P8797-4.1-1
func TestAReplyMayInvalidateAnySTagOfItsCall(t *testing.T) {
	for _, quiet := range []bool{false, true} { // Linux's server says R=0 and does it
		for i, name := range []string{"Read", "first Write", "second Write", "Reply"} {
			t.Run(name+" chunk", func(t *testing.T) {
				nettest.CheckLeaks(t)
				d := both
				d.RemoteInvalidation = !quiet
				a := answer(t, ClientConfig{}, &d)
				ended := a.start(t.Context(), everything())
				p := a.peer()
				m := p.next()
				stags := []uint32{m.Reads[0].Handle, m.Writes[0][0].Handle, m.Writes[1][0].Handle, m.Reply[0].Handle}
				p.invalidate(stags[i], untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
				checkEnded(t, within(t, "reply", ended), nil)
				ended = a.start(t.Context(), nullClientCall())
				m = p.next()
				p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
				checkEnded(t, within(t, "reply", ended), nil)
			})
		}
	}
}

// Claims: P8797-4.1-2
func TestAnSTagOfAnotherCallThatIsInvalidatedClosesTheConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	a := answer(t, ClientConfig{}, &both)
	p := a.grants(8)
	one := a.start(t.Context(), everything())
	m := p.next()
	other := a.start(t.Context(), everything())
	n := p.next()
	p.invalidate(n.Reply[0].Handle, untouched(&m.Header), exchange.Reply(m.XID, "abcd"))
	if _, open := p.nextOrEnd(); open {
		t.Error("the client has sent something")
	}
	// Both are made again.
	p = a.peer()
	for range 2 {
		again := p.next()
		if again.XID != m.XID && again.XID != n.XID {
			t.Errorf("XID %#x, want %#x or %#x", again.XID, m.XID, n.XID)
		}
		p.send(untouched(&again.Header), exchange.Reply(again.XID, "abcd"))
	}
	checkEnded(t, within(t, "reply", one), nil)
	checkEnded(t, within(t, "reply", other), nil)
}
