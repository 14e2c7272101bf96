package verbs_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// However a stream ends, its connection is closed on both sides by the time that
// the queue pair says so: no descriptor is left behind.
//
// Claims: DDP-3-12 R-7-2 R-7-4
// Claims: V-6.2.1-3 V-6.2.4-1 V-6.2.5-1 V-6.2.2.4-3
func TestTheConnectionIsClosedWhenItsStreamHasEnded(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(a *side)
		want verbs.State
	}{
		{"gracefully", func(a *side) { check(t, a.qp.Close(t.Context())) }, verbs.Idle},
		{"by a Terminate of the consumer's", func(a *side) { check(t, a.qp.Terminate()) }, verbs.Error},
		{"by a work request that failed", func(a *side) {
			wr := a.send(1, 0, 8)
			wr.SGL[0].STag++
			a.post(wr)
		}, verbs.Error},
		{"by a message without a receive", func(a *side) { a.post(a.send(1, 0, 8)) }, verbs.Error},
		{"by an abort", func(a *side) { a.qp.Abort() }, verbs.Error},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nettest.CheckLeaks(t)
			a, b := newSide(t, reads), newSide(t, reads)
			x, y := nettest.TCPPair(t, "tcp4")
			join(t, a.qp, b.qp, x, y, cm.Params{})
			tt.end(a)
			for _, s := range []struct {
				qp *verbs.QP
				nc net.Conn
			}{{a.qp, x}, {b.qp, y}} {
				reach(t, s.qp, tt.want)
				if err := s.nc.SetDeadline(time.Time{}); !errors.Is(err, net.ErrClosed) {
					t.Errorf("the queue pair is %v and its connection open (%v)", tt.want, err)
				}
			}
		})
	}
}
