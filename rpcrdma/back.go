// Calls in the reverse direction: from the side that accepted the connection to the side
// that made it (RFC 8167).

package rpcrdma

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

// A backCaller makes calls over one connection, as long as that lasts. They
// travel without chunks.
type backCaller struct {
	r       *requester
	rpcs    rpcs
	xid     atomic.Uint32
	timeout time.Duration // of a call
}

// Call makes a call.
func (b *backCaller) Call(ctx context.Context, c *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	xid := c.XID
	if !c.Forward {
		xid = b.xid.Add(1)
	}
	x, err := b.rpcs.make(c, xid, nil, 0)
	if err != nil {
		return nil, err
	}
	expired := time.NewTimer(b.timeout)
	defer expired.Stop()
	reply, err := b.r.make(ctx, x, expired.C)
	if err != nil {
		x.release()
		var lost *lostError
		if errors.As(err, &lost) {
			err = lost.err
		}
		return nil, err
	}
	return reply, nil
}

// Close does nothing: the connection is its server's.
func (b *backCaller) Close() error { return nil }
