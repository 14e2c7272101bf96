package main

/*
#include "engine.h"
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	gocontext "context"
	"net"
	"net/netip"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
)

// This file is the end of a connection that listens: requests, and what the program
// decides about them.

// mostBacklog is what programs may ask for that the system would not give either.
const mostBacklog = 4096

func listen(a *C.struct_rdma_ucm_listen) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	backlog := int(a.backlog)
	if backlog <= 0 {
		backlog = 128
	}
	backlog = min(backlog, mostBacklog)
	ln, errno := id.listenTCP(backlog)
	if errno != 0 {
		return errno
	}
	keepFrom(ln)
	cfg := config(mostReads, mostReads)
	l, err := cm.NewListener(rnic, ln, listenConfig(cfg, backlog))
	if err != nil {
		_ = ln.Close()
		return errnoOf(err)
	}
	cmMu.Lock()
	if id.dead || id.listener != nil {
		cmMu.Unlock()
		_ = l.Close()
		return syscall.EINVAL
	}
	id.listener, id.unseen, id.over = l, make(chan struct{}, backlog), make(chan struct{})
	cmMu.Unlock()
	spawn(func() { id.serve(l) })
	return 0
}

// listenTCP has the identifier's socket listen.
func (id *identifier) listenTCP(backlog int) (net.Listener, syscall.Errno) {
	cmMu.Lock()
	bound, listens := id.socket != 0, id.listener != nil
	cmMu.Unlock()
	if listens {
		return nil, syscall.EINVAL
	}
	if !bound {
		if errno := id.bind(netip.AddrPortFrom(netip.IPv4Unspecified(), 0)); errno != 0 {
			return nil, errno
		}
	}
	socket := id.takeSocket()
	if err := unix.Listen(socket, backlog); err != nil {
		id.giveSocket(socket)
		return nil, errnoOf(err)
	}
	file := os.NewFile(uintptr(socket), "rdma_cm")
	defer file.Close() // the listener has a descriptor of its own
	ln, err := net.FileListener(file)
	return ln, errnoOf(err)
}

// takeSocket takes the bound socket from the identifier: whoever has it closes it.
func (id *identifier) takeSocket() (socket int) {
	cmMu.Lock()
	defer cmMu.Unlock()
	socket, id.socket = id.socket, 0
	return socket
}

// giveSocket gives it back.
func (id *identifier) giveSocket(socket int) {
	cmMu.Lock()
	defer cmMu.Unlock()
	if id.dead || id.socket != 0 {
		_ = unix.Close(socket)
		return
	}
	id.socket = socket
}

// serve tells the program of requests until the listener is closed. Beyond the backlog
// they stay in the listener, which divides its places fairly.
func (id *identifier) serve(l *cm.Listener) {
	for {
		select {
		case id.unseen <- struct{}{}:
		case <-id.over:
			return
		}
		r, err := l.Accept(gocontext.Background())
		if err != nil {
			return
		}
		id.requested(r)
	}
}

// requested makes an identifier for a request.
func (id *identifier) requested(r *cm.Request) {
	made := &identifier{request: r, local: addrPort(r.LocalAddr()), peer: addrPort(r.RemoteAddr())}
	made.handle = identifiers.add(made)
	cmMu.Lock()
	made.channel, made.uid = id.channel, 0
	if id.dead {
		cmMu.Unlock()
		made.destroy()
		return
	}
	e := id.newEvent(connectRequest, 0)
	e.resp.id, e.made = C.__u32(made.handle), made
	e.describe(r.PrivateData(), r.ORD(), r.IRD())
	e.raise()
	cmMu.Unlock()
}

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// accept accepts a request, or ends the start-up of the side that has connected, whose
// stream exists already.
func accept(a *C.struct_rdma_ucm_accept) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	if a.uid != 0 {
		id.uid = uint64(a.uid)
	}
	r, q, connected := id.request, pairOf(&a.conn_param), id.qp != nil
	if r != nil && q != nil {
		id.request = nil
	}
	cmMu.Unlock()
	switch {
	case r == nil && connected:
		return 0
	case r == nil || q == nil:
		return syscall.EINVAL
	}
	ctx := id.begin(q)
	q.retriesOfPeer(uint8(a.conn_param.rnr_retry_count) & retriesForEver)
	p := cm.Params{PrivateData: data(&a.conn_param), MPA: config(a.conn_param.responder_resources, a.conn_param.initiator_depth)}
	spawn(func() {
		conn, err := r.Accept(ctx, q.qp, p)
		if err != nil {
			_ = r.Reject(nil) // an error of this side's own leaves it open
		}
		id.accepted(conn, err)
	})
	return 0
}

// accepted tells the program of a connection that it has accepted.
func (id *identifier) accepted(conn *cm.Conn, err error) {
	cmMu.Lock()
	defer cmMu.Unlock()
	if err != nil {
		explain("%v", err)
		id.event(connectError, errnoOf(err))
		return
	}
	e := id.newEvent(established, 0)
	e.describe(nil, conn.IRD(), conn.ORD())
	e.raise()
	id.told = true
	id.qp.connected(conn, id.ended)
}

func reject(a *C.struct_rdma_ucm_reject) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	r := id.request
	id.request = nil
	cmMu.Unlock()
	if r == nil {
		return syscall.EINVAL
	}
	said := C.GoBytes(unsafe.Pointer(&a.private_data), C.int(a.private_data_len))
	return errnoOf(elsewhere(func() error { return r.Reject(said) }))
}
