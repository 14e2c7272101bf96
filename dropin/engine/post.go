package main

/*
#include "engine.h"
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// This file is how work requests get from the program's queues to the queue pair.

const (
	// partsOf is how many requests of verbs one of the program's may become.
	partsOf = 3
	// partial marks the ID of all parts of a request but the last.
	partial = 1 << 63
)

// sends is the engine's half of a send queue.
type sends struct {
	queue *C.struct_weft_queue
	bell  atomic.Uint32 // who raises it from 0 drains the queue
	batch [64]verbs.SendWR

	failed atomic.Uint64 // 1 + the request a part of which has failed

	to        *completionQueue
	completed uint64 // requests before this one have completed, or are not signaled; to.mu
	acks      acks
}

// takeSends gives what is in the send queue to the queue pair. One thread does so at a
// time, and looks again for those who come meanwhile.
func (q *queuePair) takeSends() {
	s := &q.sends
	if failed.Load() {
		s.to.flush()
		return
	}
	if s.bell.Add(1) != 1 {
		return
	}
	for seen := uint32(1); ; seen = s.bell.Load() {
		q.drainSends()
		if s.bell.CompareAndSwap(seen, 0) {
			return
		}
	}
}

func (q *queuePair) drainSends() {
	s := &q.sends
	head := uint64(s.queue.head)
	for tail := atomic.LoadUint64((*uint64)(&s.queue.tail)); head != tail && !s.acks.blocked.Load() && !failed.Load(); {
		n, last := 0, head
		for ; last != tail && n+partsOf+1 <= len(s.batch); last++ {
			m := s.translate(s.batch[n:], last)
			if s.acks.on {
				s.unsignal(s.batch[n:n+m], last)
			}
			n += m
		}
		if s.acks.wait {
			s.batch[n] = s.acks.read(last - 1)
			n++
		}
		posted, err := q.qp.PostSends(s.batch[:n])
		if posted < n && !q.unposted(s.batch[posted], err) {
			// What was posted in part is kept: its ID says where to go on.
			return
		}
		head = last
		if posted < n {
			head = s.batch[posted].ID&^(partial|ackRead) + 1
		}
		atomic.StoreUint64((*uint64)(&s.queue.head), head)
	}
}

// unposted deals with a request that cannot be posted. False is: not now. A queue pair
// that is closing takes it when it has closed, and flushes it.
func (q *queuePair) unposted(wr verbs.SendWR, err error) bool {
	if errors.Is(err, verbs.ErrState) || errors.Is(err, verbs.ErrQP) || errors.Is(err, verbs.ErrRNIC) {
		q.sends.acks.postponed(uint64(q.sends.queue.head))
		return false
	}
	explain("%v", err)
	q.sends.acks.refused(wr.ID &^ (partial | ackRead))
	q.qp.Abort() // as a request that fails does; nothing completes it
	if !q.live() {
		q.background(q.ended) // there is no stream whose end would tell
	}
	return true
}

// live reports whether there is a stream whose end is to come.
func (q *queuePair) live() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-q.down:
		return false
	default:
		return q.down != nil
	}
}

// unsignal has the parts of a signaled request complete with the next answer of the peer.
func (s *sends) unsignal(wrs []verbs.SendWR, slot uint64) {
	last := &wrs[len(wrs)-1]
	if last.Flags&verbs.Signaled == 0 {
		return
	}
	switch last.Op {
	case verbs.OpRead, verbs.OpFetchAdd, verbs.OpCmpSwap:
		s.acks.note(slot, true)
	case verbs.OpBind, verbs.OpInvalidate:
		wait := s.acks.wait // of what is in front
		s.acks.note(slot, true)
		s.acks.wait = wait
	default:
		s.acks.note(slot, false)
		last.Flags &^= verbs.Signaled
	}
}

// slot is request n.
func (s *sends) slot(n uint64) unsafe.Pointer {
	return unsafe.Add(unsafe.Pointer(s.queue.entries), uintptr(n&uint64(s.queue.mask))*uintptr(s.queue.stride))
}

// ops are the operations, without and with a solicited event.
var ops = [...][2]verbs.Op{
	C.WEFT_SEND:            {verbs.OpSend, verbs.OpSendSE},
	C.WEFT_SEND_IMMEDIATE:  {verbs.OpSend, verbs.OpSendSE},
	C.WEFT_SEND_INVALIDATE: {verbs.OpSendInvalidate, verbs.OpSendSEInvalidate},
	C.WEFT_WRITE:           {verbs.OpWrite, verbs.OpWrite},
	C.WEFT_WRITE_IMMEDIATE: {verbs.OpWrite, verbs.OpWrite},
	C.WEFT_READ:            {verbs.OpRead, verbs.OpRead},
	C.WEFT_COMPARE_SWAP:    {verbs.OpCmpSwap, verbs.OpCmpSwap},
	C.WEFT_FETCH_ADD:       {verbs.OpFetchAdd, verbs.OpFetchAdd},
	C.WEFT_BIND:            {verbs.OpBind, verbs.OpBind},
	C.WEFT_INVALIDATE:      {verbs.OpInvalidate, verbs.OpInvalidate},
}

// translate puts what request n becomes into wrs and returns how many that is.
func (s *sends) translate(wrs []verbs.SendWR, n uint64) int {
	p := s.slot(n)
	r := (*C.struct_weft_send)(p)
	solicited := 0
	if r.flags&C.WEFT_SOLICITED != 0 {
		solicited = 1
	}
	wr := &wrs[0]
	*wr = verbs.SendWR{ID: uint64(r.id), Op: ops[r.op][solicited], SGL: elements(unsafe.Add(p, C.sizeof_struct_weft_send), int(r.sges))}
	if r.flags&C.WEFT_SIGNALED != 0 {
		wr.Flags |= verbs.Signaled
	}
	if r.flags&C.WEFT_FENCE != 0 {
		wr.Flags |= verbs.ReadFence
	}
	wr.Remote = verbs.Remote{STag: memory.STag(r.remote_key), TO: uint64(r.remote)}
	wr.SGL = throughNull(wr.SGL, r.op == C.WEFT_READ || r.op == C.WEFT_COMPARE_SWAP || r.op == C.WEFT_FETCH_ADD)
	switch r.op {
	case C.WEFT_READ:
		if r.sges == 0 {
			wr.SGL = nowhere
		}
	case C.WEFT_COMPARE_SWAP:
		wr.Atomic = verbs.Atomic{Data: uint64(r.operand), Mask: ^uint64(0), Compare: uint64(r.compare), CompareMask: ^uint64(0)}
	case C.WEFT_FETCH_ADD:
		wr.Atomic = verbs.Atomic{Data: uint64(r.operand)}
	case C.WEFT_SEND_INVALIDATE, C.WEFT_INVALIDATE:
		wr.Invalidate = memory.STag(r.immediate)
	case C.WEFT_BIND:
		s.bind(wr, r)
	case C.WEFT_WRITE_IMMEDIATE:
		return writeImmediate(wrs, r)
	case C.WEFT_SEND_IMMEDIATE:
		return sendImmediate(wrs, r)
	}
	return 1
}

// nowhere is the sink of a Read of no octets.
var nowhere = []verbs.SGE{{}}

// bind is a binding. One of no octets, or without a right for the peer, unbinds.
func (s *sends) bind(wr *verbs.SendWR, r *C.struct_weft_send) {
	b := binding(r)
	if b.Length > 0 && b.Access != 0 {
		wr.Bind = &b
		return
	}
	wr.SGL = nil
	a, err := rnic.QueryMW(b.Window.Index())
	if err != nil || !a.Valid {
		wr.Op, wr.Remote = verbs.OpWrite, verbs.Remote{} // of no octets: nothing is to be done
		return
	}
	wr.Op, wr.Invalidate = verbs.OpInvalidate, memory.STag(a.Index<<8|uint32(a.Key))
}

// Immediate data travels in a message of RFC 7306, of 8 octets: the program's 4, and 4
// that say what it belongs to. Behind a Write it is how many octets that had; in front
// of a Send it is beforeSend.
const beforeSend = 1<<32 - 1

func immediate(r *C.struct_weft_send, belongs uint32) (data [8]byte) {
	binary.NativeEndian.PutUint32(data[:], uint32(r.immediate)) // in network order already
	binary.BigEndian.PutUint32(data[4:], belongs)
	return data
}

// writeImmediate is a Write, and behind it the message that completes a receive.
func writeImmediate(wrs []verbs.SendWR, r *C.struct_weft_send) int {
	length := uint32(0)
	for _, e := range wrs[0].SGL {
		length += e.Length
	}
	wrs[1] = verbs.SendWR{ID: wrs[0].ID, Op: verbs.OpImmediate, Flags: wrs[0].Flags, Immediate: immediate(r, length)}
	if r.flags&C.WEFT_SOLICITED != 0 {
		wrs[1].Op = verbs.OpImmediateSE
	}
	wrs[0].ID |= partial
	wrs[0].Flags &^= verbs.Signaled
	return 2
}

// sendImmediate is a message that announces the data of the Send behind it.
func sendImmediate(wrs []verbs.SendWR, r *C.struct_weft_send) int {
	wrs[1] = wrs[0]
	wrs[0] = verbs.SendWR{ID: wrs[1].ID | partial, Op: verbs.OpImmediate, Flags: wrs[1].Flags &^ verbs.Signaled, Immediate: immediate(r, beforeSend)}
	return 2
}

// sentLength is the number of octets that a completion of the send queue tells of:
// those that a Read or an atomic has brought.
func (q *queuePair) sentLength(slot uint64) (n uint32) {
	p := q.sends.slot(slot)
	r := (*C.struct_weft_send)(p)
	switch r.op {
	case C.WEFT_READ, C.WEFT_FETCH_ADD, C.WEFT_COMPARE_SWAP:
		for _, e := range elements(unsafe.Add(p, C.sizeof_struct_weft_send), int(r.sges)) {
			n += e.Length
		}
	}
	return n
}

// receives is the engine's half of a receive queue.
type receives struct {
	queue    *C.struct_weft_queue
	shared   *sharedQueue // in place of the queue
	flushing atomic.Bool  // nothing is to be received any more

	to        *completionQueue
	completed uint64 // receives before this one have completed; to.mu

	mu    sync.Mutex
	batch [32]verbs.RecvWR

	// A message in front of a Send with immediate data uses a receive that the
	// program wants for the Send. So that it can be posted again, and be the next,
	// receives are posted one at a time where such messages may come.
	single bool
	posted atomic.Int32 // those that have not completed; not of a shared queue
	again  atomic.Bool  // the one that was taken last is the next

	announced struct { // by the message before; the receiving goroutine's
		is   bool
		data uint32
	}
}

// refill posts receives for a message that has come. If there are none, the program is
// asked to call when it posts one.
func (q *queuePair) refill() {
	q.takeReceives()
	if !q.qp.Config().PauseOnEmptyRQ || !q.empty() {
		return
	}
	atomic.StoreUint32((*uint32)(&q.receives.queue.bell), 1)
	if !q.empty() { // one was posted before the bell was seen; this unsets it
		q.takeReceives()
	}
}

func (q *queuePair) empty() bool {
	r := q.receives.queue
	return !q.receives.again.Load() && atomic.LoadUint64((*uint64)(&r.head)) == atomic.LoadUint64((*uint64)(&r.tail))
}

// takeReceives posts what is in the receive queue.
func (q *queuePair) takeReceives() {
	r := &q.receives
	if r.shared != nil {
		return
	}
	if failed.Load() {
		r.to.flush()
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	bell := uint32(0)
	if r.flushing.Load() {
		bell = 1
	}
	atomic.StoreUint32((*uint32)(&r.queue.bell), bell)
	head := uint64(r.queue.head)
	for {
		room := r.room()
		if room > 0 && r.again.Swap(false) { // in this order: again is set first
			head--
		}
		n := int(min(uint64(room), atomic.LoadUint64((*uint64)(&r.queue.tail))-head))
		if n == 0 {
			break
		}
		for i := range n {
			at := (head + uint64(i)) & uint64(r.queue.mask)
			r.batch[i] = receiveAt(unsafe.Add(unsafe.Pointer(r.queue.entries), uintptr(at)*uintptr(r.queue.stride)))
		}
		posted, err := q.qp.PostRecvs(r.batch[:n])
		r.posted.Add(int32(posted))
		head += uint64(posted)
		if err != nil {
			break // closing, or as many as the queue pair takes
		}
	}
	atomic.StoreUint64((*uint64)(&r.queue.head), head)
}

// room is how many receives may be posted now.
func (r *receives) room() int {
	if r.single && !r.flushing.Load() {
		return max(0, 1-int(r.posted.Load()))
	}
	return len(r.batch)
}

// takes reports that a completion is only a part of a request.
func (q *queuePair) takes(wc *verbs.WC) bool {
	if wc.Op == verbs.OpRecv || wc.Op == verbs.OpRecvImmediate {
		announces := q.announces(wc)
		q.receives.posted.Add(-1) // another may be posted from now on
		return announces
	}
	s := &q.sends
	if wc.ID&partial != 0 { // only in error: the last part will be flushed
		s.failed.Store(wc.ID&^partial + 1)
		return false
	}
	return wc.Status != verbs.Success && s.failed.Load() == wc.ID+1
}

// announces takes the message in front of a Send with immediate data, and posts its
// receive again, for that Send.
func (q *queuePair) announces(wc *verbs.WC) bool {
	if wc.Op != verbs.OpRecvImmediate || wc.Status != verbs.Success || binary.BigEndian.Uint32(wc.Immediate[4:]) != beforeSend {
		return false
	}
	a := &q.receives.announced
	a.is, a.data = true, binary.NativeEndian.Uint32(wc.Immediate[:4])
	if s := q.receives.shared; s != nil {
		s.repost(wc.ID)
	} else {
		q.receives.again.Store(true)
	}
	return true
}

// describe fills in the completion of a receive.
func (q *queuePair) describe(c *C.struct_weft_completion, wc *verbs.WC) {
	c.op = C.WEFT_RECEIVE
	if s := q.receives.shared; s != nil {
		c.shared, c.id = 1, C.uint64_t(s.release(wc.ID))
	}
	if wc.Status != verbs.Success {
		return
	}
	c.length = C.uint32_t(wc.Bytes)
	a := &q.receives.announced
	switch {
	case wc.Op == verbs.OpRecvImmediate:
		c.flags |= C.WEFT_HAS_IMMEDIATE | C.WEFT_OF_WRITE
		c.immediate = C.uint32_t(binary.NativeEndian.Uint32(wc.Immediate[:4]))
		c.length = C.uint32_t(binary.BigEndian.Uint32(wc.Immediate[4:]))
	case a.is:
		a.is = false
		c.flags |= C.WEFT_HAS_IMMEDIATE
		c.immediate = C.uint32_t(a.data)
	case wc.HasInvalidated:
		c.flags |= C.WEFT_HAS_INVALIDATED
		c.immediate = C.uint32_t(wc.Invalidated)
	}
}
