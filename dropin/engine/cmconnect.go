package main

/*
#include "engine.h"
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	gocontext "context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/panics"
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
	d := id.dial(peer)
	spawn(func() {
		nc, err := d.wait(ctx)
		var conn *cm.Conn
		if err == nil {
			conn, err = connectOver(ctx, q.qp, nc, p)
		}
		id.answered(conn, err)
	})
	return 0
}

// A dialing is the connection below, on its way.
type dialing struct {
	peer   netip.AddrPort
	bound  bool // the program has chosen its address
	socket *os.File
	err    error
}

// dial begins to connect, from the address that the program has bound. It does so in the
// program's thread: programs with several connections rely on it that they arrive in the
// order in which they were asked for (perftest numbers its queue pairs by it).
func (id *identifier) dial(peer netip.AddrPort) *dialing {
	socket := id.takeSocket()
	d := &dialing{peer: peer, bound: socket != 0}
	d.begin(socket)
	return d
}

func (d *dialing) begin(socket int) {
	family, sa := sockaddr(d.peer)
	if socket == 0 {
		if socket, d.err = newSocket(family); d.err != nil {
			return
		}
	}
	d.err = unix.Connect(socket, sa)
	d.socket = os.NewFile(uintptr(socket), "rdma_cm")
}

// wait waits for the connection. A peer that refuses is asked again for a moment: programs
// tell their port to each other before they listen (qperf does).
func (d *dialing) wait(ctx gocontext.Context) (net.Conn, error) {
	for tries := 0; ; tries++ {
		nc, err := d.waitOnce(ctx)
		if !errors.Is(err, syscall.ECONNREFUSED) || d.bound || tries == refusals || ctx.Err() != nil {
			return nc, d.named(err)
		}
		time.Sleep(refusalPause)
		d.begin(0)
	}
}

// named says in an error what could not be reached.
func (d *dialing) named(err error) error {
	if err != nil {
		err = fmt.Errorf("connect to %v: %w", d.peer, err)
	}
	return err
}

// refusals are how often a peer that refuses is asked again, and refusalPause is how
// long after.
const (
	refusals     = 20
	refusalPause = 20 * time.Millisecond
)

func (d *dialing) waitOnce(ctx gocontext.Context) (net.Conn, error) {
	if d.socket == nil {
		return nil, d.err
	}
	defer d.socket.Close() // the connection has a descriptor of its own
	if d.err == unix.EINPROGRESS {
		d.err = connected(ctx, d.socket)
	}
	if d.err != nil {
		return nil, d.err
	}
	return net.FileConn(d.socket)
}

// connectTimeout is how long a peer may leave a connection without an answer.
const connectTimeout = 30 * time.Second

// connected waits until a socket is connected.
func connected(ctx gocontext.Context, socket *os.File) error {
	if err := socket.SetWriteDeadline(time.Now().Add(connectTimeout)); err != nil {
		return err
	}
	defer gocontext.AfterFunc(ctx, func() {
		defer panics.Recover()
		_ = socket.SetWriteDeadline(time.Unix(1, 0))
	})()
	rc, err := socket.SyscallConn()
	if err != nil {
		return err
	}
	var failure error
	err = rc.Write(func(fd uintptr) bool {
		var errno int
		if errno, failure = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); failure != nil {
			return true
		}
		if errno != 0 {
			failure = syscall.Errno(errno)
			return true
		}
		_, err := unix.Getpeername(int(fd))
		return err == nil
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		return failure
	}
	return err
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
