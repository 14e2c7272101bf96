// This file remembers calls whose chunks have made a connection fail, so that the
// same call does not end every connection that its client makes (RFC 8166
// §4.5.3).

package rpcrdma

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// maxFailures bounds what is remembered; the oldest is forgotten first.
const maxFailures = 256

// A failure is a call: its requester may well have another port by the time it
// sends it again.
type failure struct {
	peer netip.Addr
	xid  uint32
}

// failures are calls that are answered with ERR_CHUNK when they come again. A
// nil *failures remembers none. Methods may be called by any goroutine.
type failures struct {
	mu   sync.Mutex
	ring [maxFailures]failure
	next int
	set  map[failure]bool
}

// add remembers a call.
func (f *failures) add(peer netip.Addr, xid uint32) {
	if f == nil || !peer.IsValid() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.set == nil {
		f.set = make(map[failure]bool)
	}
	call := failure{peer, xid}
	if f.set[call] {
		return
	}
	delete(f.set, f.ring[f.next])
	f.ring[f.next], f.set[call] = call, true
	f.next = (f.next + 1) % maxFailures
}

// remove reports whether a call is remembered, and forgets it.
func (f *failures) remove(peer netip.Addr, xid uint32) bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	call := failure{peer, xid}
	if !f.set[call] {
		return false
	}
	delete(f.set, call)
	return true
}

// addrOf is the address of a peer without its port; not valid if it has none.
func addrOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// recent are the last replies with RDMA Writes. A Write completes when it has been
// sent. If the peer refuses it, that is known when its Terminate message arrives.
type recent struct {
	replies [32]struct {
		xid   uint32
		stags []uint32
	}
	next int
}

// add remembers the STags that the work requests of a reply write to.
func (l *recent) add(xid uint32, wrs []verbs.SendWR) {
	if wrs[0].Op != verbs.OpWrite {
		return
	}
	reply := &l.replies[l.next]
	l.next = (l.next + 1) % len(l.replies)
	reply.xid, reply.stags = xid, reply.stags[:0]
	for i := range wrs {
		stag := uint32(wrs[i].Remote.STag)
		if wrs[i].Op == verbs.OpWrite && (len(reply.stags) == 0 || reply.stags[len(reply.stags)-1] != stag) {
			reply.stags = append(reply.stags, stag)
		}
	}
}

// find returns the XIDs of replies that have written to an STag.
func (l *recent) find(stag uint32) (xids []uint32) {
	for i := range l.replies {
		for _, s := range l.replies[i].stags {
			if s == stag {
				xids = append(xids, l.replies[i].xid)
				break
			}
		}
	}
	return xids
}

// blame remembers the calls whose Writes the peer has ended the connection for,
// if it has: its Terminate message repeats the header of what it refused.
func (r *responder) blame(err error) {
	var t *rdmap.TerminateError
	if !errors.As(err, &t) || !t.Remote {
		return
	}
	var h ddp.Tagged
	if len(t.DDPHeader) == 0 || !ddp.IsTagged(t.DDPHeader) || !h.Parse(t.DDPHeader) {
		return
	}
	if _, op := rdmap.ParseControl(t.DDPHeader[1]); op != rdmap.OpWrite {
		return
	}
	for _, xid := range r.replies.find(h.STag) {
		r.cfg.failures.add(r.peer, xid)
	}
}
