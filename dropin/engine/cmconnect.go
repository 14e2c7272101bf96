package main

/*
#include "engine.h"
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	gocontext "context"
	"errors"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
)

// This file is the end of a connection that connects.

func connect(a *C.struct_rdma_ucm_connect) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	peer := id.peer
	cmMu.Unlock()
	q := pairOf(&a.conn_param)
	if q == nil || !peer.IsValid() {
		return syscall.EINVAL
	}
	ctx := id.begin(q)
	q.retriesOfPeer(uint8(a.conn_param.rnr_retry_count) & retriesForEver)
	p := cm.Params{
		PrivateData: data(&a.conn_param), MPA: config(a.conn_param.responder_resources, a.conn_param.initiator_depth),
		Nudge: cm.DefaultNudge, Socket: options.socket,
	}
	spawn(func() {
		nc, err := id.dial(ctx, peer)
		var conn *cm.Conn
		if err == nil {
			conn, err = connectOver(ctx, q.qp, nc, p)
		}
		id.answered(conn, err)
	})
	return 0
}

// dial makes the connection below, from the address that the program has bound. A peer
// that refuses is asked again for a moment: programs tell their port to each other
// before they listen (qperf does).
func (id *identifier) dial(ctx gocontext.Context, peer netip.AddrPort) (net.Conn, error) {
	socket := id.takeSocket()
	for tries := 0; ; tries++ {
		nc, err := dialOnce(ctx, socket, peer)
		if !errors.Is(err, syscall.ECONNREFUSED) || socket != 0 || tries == refusals || ctx.Err() != nil {
			return nc, err
		}
		time.Sleep(refusalPause)
	}
}

// refusals are how often a peer that refuses is asked again, and refusalPause is how
// long after.
const (
	refusals     = 20
	refusalPause = 20 * time.Millisecond
)

func dialOnce(ctx gocontext.Context, socket int, peer netip.AddrPort) (net.Conn, error) {
	if socket == 0 {
		return newDialer().DialContext(ctx, "tcp", peer.String())
	}
	_, sa := sockaddr(peer)
	err := unix.Connect(socket, sa)
	if err == unix.EINPROGRESS {
		err = await(ctx, socket)
	}
	file := os.NewFile(uintptr(socket), "rdma_cm")
	defer file.Close() // the connection has a descriptor of its own
	if err != nil {
		return nil, err
	}
	return net.FileConn(file)
}

// connectTimeout is how long a peer may leave a connection without an answer.
const connectTimeout = 30 * time.Second

// await waits until a socket is connected.
func await(ctx gocontext.Context, socket int) error {
	for end := time.Now().Add(connectTimeout); time.Now().Before(end) && ctx.Err() == nil; {
		ready := []unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}
		if n, err := unix.Poll(ready, 100); n == 0 || err == unix.EINTR {
			continue
		}
		errno, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
		if err == nil && errno != 0 {
			err = syscall.Errno(errno)
		}
		return err
	}
	return syscall.ETIMEDOUT
}

// answered tells the program how its attempt to connect has ended.
func (id *identifier) answered(conn *cm.Conn, err error) {
	cmMu.Lock()
	defer cmMu.Unlock()
	var refused *cm.RejectedError
	switch {
	case err == nil:
		id.local, id.peer = addrPort(conn.LocalAddr()), addrPort(conn.RemoteAddr())
		e := id.newEvent(connectResponse, 0)
		e.describe(conn.PrivateData(), conn.IRD(), conn.ORD())
		e.raise()
		id.told = true
		id.qp.connected(conn, id.ended)
	case errors.As(err, &refused):
		e := id.newEvent(rejected, syscall.ECONNREFUSED)
		e.describe(refused.PrivateData, 0, 0)
		e.raise()
	default:
		explain("%v", err)
		sayIfTLS(err)
		id.failed(err)
	}
}

// failed tells the program that its connection did not come about; needs cmMu.
func (id *identifier) failed(err error) {
	switch {
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ECONNRESET), isOfTLS(err):
		id.event(rejected, syscall.ECONNREFUSED)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT), errors.Is(err, syscall.EHOSTUNREACH):
		id.event(unreachable, syscall.ETIMEDOUT)
	case isOfDescriptors(err):
		id.event(connectError, syscall.EMFILE)
	default:
		id.event(connectError, syscall.ECONNABORTED)
	}
}
