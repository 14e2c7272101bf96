package rpcrdma

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// byHand connects a peer that is made by hand, and so need not answer RDMA Reads,
// nor take more than room octets.
func (s *serving) byHand(room int) (p *iwarptest.Peer, over <-chan error) {
	s.t.Helper()
	return s.byHandWith(room, nil)
}

// byHandWith does so with the enhanced data of RFC 6581 §9, nil for none.
func (s *serving) byHandWith(room int, enhanced []byte) (p *iwarptest.Peer, over <-chan error) {
	s.t.Helper()
	a, b := iwarptest.BufferedPipe(room)
	over = s.over(b)
	p = iwarptest.NewPeer(a)
	if err := a.SetDeadline(time.Time{}); err != nil {
		s.t.Fatal(err)
	}
	private := wire.PrivateData{SendSize: 4096, ReceiveSize: 4096}
	if _, err := p.Initiate(iwarptest.Startup{CRC: true, Enhanced: enhanced, Private: private.Append(nil)}); err != nil {
		s.t.Fatal(err)
	}
	return p, over
}

// over serves a connection, and returns a channel that gets its end.
func (s *serving) over(nc net.Conn) <-chan error {
	ended := make(chan error, 1)
	s.ended.Go(func() {
		req, err := cm.Receive(context.Background(), nc, mpa.Config{})
		if err == nil {
			err = s.server.ServeConn(req)
		}
		ended <- err
	})
	return ended
}

// Who serves RDMA Reads one by one, each in time, makes progress all along. Still
// the memory of its call is not its own for as long as it likes.
func TestACallThatIsServedTooSlowlyEndsItsConnection(t *testing.T) {
	const segments, each = 100, 50 * time.Second
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, ServerConfig{Stall: time.Minute})
		p, over := s.byHand(1 << 20)
		began := time.Now()
		h := wire.Header{XID: 1, Proc: wire.ProcNoMsg, Credits: 32}
		for range segments {
			h.Reads = append(h.Reads, wire.ReadSegment{Position: 0, Segment: wire.Segment{Handle: 0x1100, Length: 4, Offset: 0}})
		}
		if err := p.Send(iwarptest.Send(1, h.Append(nil)...)); err != nil {
			t.Fatal(err)
		}
		served := 0
		for {
			u, err := p.Next()
			if err != nil {
				break
			}
			if m, err := iwarptest.Parse(u); err != nil || m.Opcode != 1 {
				continue // a Terminate message at the end
			}
			time.Sleep(each)
			sink := u[18:] // RFC 5040 §4.4: sink STag and Tagged Offset, size
			if p.Send(iwarptest.ReadResponse(binary.BigEndian.Uint32(sink), binary.BigEndian.Uint64(sink[4:]), 0, 0, 0, 1)) != nil {
				break
			}
			served++
		}
		if err := <-over; err == nil {
			t.Error("the connection ended without an error")
		}
		if took := time.Since(began); took > 10*time.Minute || served < 2 || served == segments {
			t.Errorf("it took %v and %d Reads to lose patience", took, served)
		}
		_ = p.Close()
	})
}

// A call whose context ends does not time out. What was sent keeps its credit, and
// a server that answers none of them would leave none for calls to come.
func TestAConnectionWhoseCreditsNobodyWaitsForIsMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := answer(t, ClientConfig{}, &both)
		a.calls.Go(func() {
			<-a.peers // answers nothing
			select {
			case p := <-a.peers:
				m := p.next()
				p.send(wire.Header{XID: m.XID}, exchangeNull(m.XID))
			case <-t.Context().Done():
			}
		})
		began := time.Now()
		for {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			err := (<-a.start(ctx, nullClientCall())).err
			cancel()
			if err == nil {
				return
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if time.Since(began) > 5*time.Minute {
				t.Fatal("no other connection was made")
			}
		}
	})
}
