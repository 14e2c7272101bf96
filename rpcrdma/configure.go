// This file asks the server for its limits by CONF_RDMA (RFC 5666 §6).

package rpcrdma

import (
	"errors"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// configure exchanges CONF_RDMA with the server, before anything else is called.
// What a server answers that does not have it changes nothing. One that does not
// answer is not asked again: the one credit that there is at first is used up, so
// that another connection has to be made.
func (c *Client) configure(r *requester) {
	c.mu.Lock()
	c.xid++
	xid, skip := c.xid, c.link.unanswered
	c.mu.Unlock()
	if skip {
		return
	}
	e := r.e
	call := wire.ConfCall{
		MaxCallSendSize:  e.cfg.private.SendSize,
		MaxReplySendSize: e.cfg.private.ReceiveSize,
		MaxRDMARead:      uint32(e.conn.IRD()),
	}
	conf, err := c.exchange(r, xid, call)
	switch {
	case errors.Is(err, ErrTimeout):
		c.mu.Lock()
		c.link.unanswered = true
		c.mu.Unlock()
		fallthrough
	case err != nil:
		r.log("CONF_RDMA failed", err)
		return
	}
	e.threshold.Store(int64(conf.CallThreshold(call)))
	e.queue.limitReads(int(min(uint32(e.mostReads), conf.MaxRDMARead)))
	r.mu.Lock()
	r.align = conf.Align
	r.mu.Unlock()
}

// exchange makes the call.
func (c *Client) exchange(r *requester, xid uint32, call wire.ConfCall) (conf wire.ConfReply, err error) {
	x, err := c.rpcs.make(&oncrpc.ClientCall{
		Call:     oncrpc.Call{Prog: wire.ConfProgram, Vers: wire.ConfVersion, Proc: wire.ConfRDMA, Cred: c.cfg.ConfigureCred},
		Args:     [][]byte{call.Append(nil)},
		MaxReply: 24 + oncrpc.MaxAuthBody + wire.ConfLen, // inline, whatever the threshold
	}, xid, nil, 0)
	if err != nil {
		return conf, err
	}
	expired := time.NewTimer(c.cfg.DialTimeout)
	defer expired.Stop()
	reply, err := r.make(c.ctx, x, expired.C)
	if err != nil {
		x.release()
		return conf, err
	}
	defer reply.Release()
	return conf, conf.Parse(reply.Results)
}
