package main

/*
#include "engine.h"
#include <rdma/rdma_user_cm.h>
*/
import "C"

import (
	gocontext "context"
	"net/netip"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
)

// An identifier is an rdma_cm_id: one end of a connection, or what listens for them.
type identifier struct {
	handle uint32

	// cmMu:
	channel  *channel
	uid      uint64
	reported uint32 // events that the program has taken
	dead     bool
	reuse    bool
	only6    bool
	timeout  uint8 // of its queue pair, as the program has set it
	socket   int   // bound, until it listens or connects; 0 is none
	local    netip.AddrPort
	peer     netip.AddrPort
	listener *cm.Listener
	unseen   chan struct{} // has one for each request that the program has not seen; nil without a listener
	over     chan struct{} // closed when the listener is
	request  *cm.Request   // that waits for a decision
	qp       *queuePair    // that is connected, or will be
	cancel   gocontext.CancelFunc
	told     bool // the program knows that it is connected
}

var identifiers table[identifier]

// The events of rdma_cm (rdma/rdma_cma.h).
const (
	addrResolved    = 0
	addrError       = 1
	routeResolved   = 2
	connectRequest  = 4
	connectResponse = 5
	connectError    = 6
	unreachable     = 7
	rejected        = 8
	established     = 9
	disconnected    = 10
)

// newEvent is an event of this identifier.
func (id *identifier) newEvent(kind uint32, status syscall.Errno) *cmEvent {
	e := &cmEvent{id: id}
	e.resp.id, e.resp.event, e.resp.status = C.__u32(id.handle), C.__u32(kind), C.__u32(-int32(status))
	return e
}

// event raises an event without more; needs cmMu.
func (id *identifier) event(kind uint32, status syscall.Errno) { id.newEvent(kind, status).raise() }

// describe puts the terms of a connection, or of a request for one, into an event.
func (e *cmEvent) describe(privateData []byte, responder, initiator int) {
	p := (*C.struct_rdma_ucm_conn_param)(unsafe.Pointer(&e.resp.param))
	n := min(len(privateData), len(p.private_data)-1) // the length has 8 bits
	for i := range n {
		p.private_data[i] = C.__u8(privateData[i])
	}
	p.private_data_len = C.__u8(n)
	p.responder_resources, p.initiator_depth = depth(responder), depth(initiator)
}

// depth is a number of Reads as rdma_cm has it. What a peer did not say is the most.
func depth(n int) C.__u8 {
	if n == int(mpa.NotNegotiated) {
		return mostReads
	}
	return C.__u8(min(n, 255))
}

// mostReads are the Reads at a time that the device takes, as ibv_query_device says.
const mostReads = 128

// destroy ends an identifier and what hangs on it. It returns how many of its events
// the program has taken.
func (id *identifier) destroy() uint32 {
	identifiers.remove(id.handle)
	cmMu.Lock()
	id.dead = true
	var unseen []*identifier
	if id.channel != nil {
		unseen = id.channel.purge(id)
	}
	listener, request, socket, cancel := id.listener, id.request, id.socket, id.cancel
	if listener != nil {
		close(id.over)
	}
	id.listener, id.request, id.socket, id.cancel = nil, nil, 0, nil
	reported := id.reported
	cmMu.Unlock()
	if cancel != nil {
		cancel()
	}
	if socket > 0 {
		_ = unix.Close(socket)
	}
	if listener != nil {
		_ = unlessFailed(listener.Close)
	}
	if request != nil {
		spawn(func() { _ = request.Reject(nil) }) // the program does not wait for that
	}
	for _, u := range unseen {
		u.destroy()
	}
	return reported
}

// config is the start-up with so many Reads in each direction.
func config(responder, initiator C.__u8) mpa.Config {
	if rcPersona { // the engine makes Reads of its own, see acks
		responder, initiator = mostReads, mostReads
	}
	return mpa.Config{
		NoCRC: options.noCRC, PeerToPeer: true,
		IRD: uint16(responder), MaxIRD: max(uint16(responder), 1), ORD: uint16(initiator),
		DecisionTimeout: decisionTimeout,
	}
}

// decisionTimeout is how long a request waits for rdma_accept.
const decisionTimeout = 5 * time.Minute

// data is what a program gives to its peer.
func data(p *C.struct_rdma_ucm_conn_param) []byte {
	return C.GoBytes(unsafe.Pointer(&p.private_data), C.int(p.private_data_len))
}

// pairOf is the queue pair that a command names.
func pairOf(p *C.struct_rdma_ucm_conn_param) *queuePair {
	if rcPersona {
		return ofNumber(uint32(p.qp_num))
	}
	return byNumber(uint32(p.qp_num))
}

// begin notes which queue pair is being connected.
func (id *identifier) begin(q *queuePair) gocontext.Context {
	ctx, cancel := gocontext.WithCancel(gocontext.Background())
	q.unannounced()
	cmMu.Lock()
	defer cmMu.Unlock()
	id.qp, id.cancel = q, cancel
	return ctx
}

// ended tells the program of the end of its connection.
func (id *identifier) ended() {
	cmMu.Lock()
	defer cmMu.Unlock()
	if id.told {
		id.told = false
		id.event(disconnected, 0)
	}
}

func disconnect(a *C.struct_rdma_ucm_disconnect) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	q := id.qp
	cmMu.Unlock()
	if q == nil {
		return syscall.EINVAL
	}
	return q.disconnect()
}
