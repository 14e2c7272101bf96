// The sockets of a sample. The peers in Go get theirs from here, so that they
// are set alike: TCP_NODELAY (Go's default), buffers left to the system's
// tuning, the congestion control that the run asks for.

package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"time"

	"github.com/weft-rdma/weft/cm"
)

// loopback is the address of targets that are not told another.
const loopback = "127.0.0.1"

// listen returns a listener on a free port of job's address whose connections use job's
// congestion control.
func listen(ctx context.Context, job Job) (*net.TCPListener, error) {
	lc := net.ListenConfig{Control: cm.Socket{Congestion: job.Congestion}.Control}
	ln, err := lc.Listen(ctx, "tcp", net.JoinHostPort(cmp.Or(job.Address, loopback), "0"))
	if err != nil {
		return nil, err
	}
	return ln.(*net.TCPListener), nil
}

// accept takes one connection from ln. When ctx ends first, it gives up.
func accept(ctx context.Context, ln *net.TCPListener) (*net.TCPConn, error) {
	stop := context.AfterFunc(ctx, func() { ln.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	nc, err := ln.AcceptTCP()
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("no connection arrived on %v: %w", ln.Addr(), context.Cause(ctx))
	}
	return nc, err
}

// dial connects to addr with the named congestion control.
func dial(ctx context.Context, addr, congestion string) (*net.TCPConn, error) {
	d := net.Dialer{Control: cm.Socket{Congestion: congestion}.Control}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return nc.(*net.TCPConn), nil
}

// dialReady connects to a target that says it is ready.
func dialReady(ctx context.Context, job Job, ready Ready) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return dial(ctx, ready.Addr, job.Congestion)
}

// congestionInUse reports what a socket asked for congestion really gets; ""
// where the system does not say.
func congestionInUse(ctx context.Context, congestion string) (string, error) {
	ln, err := listen(ctx, Job{Congestion: congestion})
	if err != nil {
		return "", err
	}
	defer ln.Close()
	options, err := cm.SocketOf(ln)
	return options.Congestion, err
}
