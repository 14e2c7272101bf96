package rpcrdma

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// If the server's RNIC leaves the first call unread, as Linux siw may, the call is still
// sent once, over one connection, and answered a moment later.
func TestAFirstCallThatWasLeftUnreadIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, ServerConfig{})
		var connected time.Time
		c := must(NewClient(ClientConfig{Dial: func(ctx context.Context, qp *verbs.QP, p cm.Params) (*cm.Conn, error) {
			here, there := iwarptest.Pipe()
			s.ended.Go(func() {
				if req, err := cm.Receive(context.Background(), nettest.Sluggish(there, 2), mpa.Config{}); err == nil {
					_ = s.server.ServeConn(req)
				}
			})
			defer func() { connected = time.Now() }()
			return cm.Connect(ctx, qp, here, p)
		}}))(t)
		r, err := c.Call(t.Context(), nullClientCall())
		if err != nil {
			t.Fatal(err)
		}
		r.Release()
		if took := time.Since(connected); took != 4*cm.DefaultNudge {
			t.Errorf("it took %v, expected two nudges: %v", took, 4*cm.DefaultNudge)
		}
		if s := c.Stats(); s.Connections != 1 || s.Repeated != 0 {
			t.Errorf("%+v", s)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		s.close()
	})
}
