// This file watches the calls of a gateway to its server.

package main

import (
	"context"

	"github.com/weft-rdma/weft/nfs/gateway"
	"github.com/weft-rdma/weft/oncrpc"
)

// wrapBackend makes w watch all calls to a backend.
func (w *watch) wrapBackend(b gateway.Backend) gateway.Backend {
	open := b.Open
	b.Open = func(f gateway.Front) (oncrpc.Caller, error) {
		c, err := open(f)
		if err != nil {
			return nil, err
		}
		return &watchedCaller{c, w}, nil
	}
	return b
}

// A watchedCaller is one of several callers of a server.
type watchedCaller struct {
	oncrpc.Caller
	watch *watch
}

// Call makes a call. The first that fails because of TLS is reported.
func (c *watchedCaller) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	reply, err := c.watch.callBy(ctx, c.Caller, call)
	switch told := c.watch.insecure.Load(); {
	case err == nil && told:
		c.watch.insecure.Store(false)
	case err != nil && !told && rpcTLSTrouble(c.watch.server, err) != nil && !c.watch.insecure.Swap(true):
		c.watch.notice(notReached(c.watch.server, err))
	}
	return reply, err
}

// LocalPort returns the local port of the connection, 0 if unknown.
func (c *watchedCaller) LocalPort() int {
	if p, ok := c.Caller.(interface{ LocalPort() int }); ok {
		return p.LocalPort()
	}
	return 0
}
