// This file is the client and the server.

package ucmatose

import (
	"context"
	"fmt"
	"sync"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// Client connects to a ucmatose server, receives its messages, sends as many
// back, and waits for the server to disconnect.
func Client(ctx context.Context, rnic *verbs.RNIC, addr string, cfg Config, params cm.Params) error {
	return each(cfg, func(i int) error {
		e, err := newEndpoint(rnic, cfg)
		if err != nil {
			return err
		}
		defer e.Release()
		conn, err := cm.Dial(ctx, e.QP, "tcp", addr, params)
		if err != nil {
			return fmt.Errorf("connecting: %w", err)
		}
		defer conn.Shutdown(ctx)
		if err := e.receive(ctx); err != nil {
			return err
		}
		if err := e.send(ctx); err != nil {
			return err
		}
		if _, err := e.QP.WaitState(ctx, verbs.Closing, verbs.Idle, verbs.Terminate, verbs.Error); err != nil {
			return fmt.Errorf("waiting for the server to disconnect: %w", err)
		}
		return e.QP.Err()
	})
}

// Server takes the connections of a ucmatose client from ln, sends to each,
// receives as many messages back, and disconnects.
func Server(ctx context.Context, rnic *verbs.RNIC, ln *cm.Listener, cfg Config, params cm.Params) error {
	return each(cfg, func(i int) error {
		e, err := newEndpoint(rnic, cfg)
		if err != nil {
			return err
		}
		defer e.Release()
		req, err := ln.Accept(ctx)
		if err != nil {
			return fmt.Errorf("accepting: %w", err)
		}
		conn, err := req.Accept(ctx, e.QP, params)
		if err != nil {
			return fmt.Errorf("accepting %v: %w", req.RemoteAddr(), err)
		}
		if err := e.send(ctx); err != nil {
			return err
		}
		if err := e.receive(ctx); err != nil {
			return err
		}
		return conn.Shutdown(ctx)
	})
}

// each runs all connections at once and returns the first failure.
func each(cfg Config, connection func(i int) error) error {
	errs := make([]error, cfg.Connections)
	var all sync.WaitGroup
	for i := range cfg.Connections {
		all.Go(func() { errs[i] = connection(i) })
	}
	all.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("connection %d: %w", i+1, err)
		}
	}
	return nil
}
