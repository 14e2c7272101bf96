// This file holds memory while octets move to and from it. A revocation waits for
// holders.

package memory

import (
	"github.com/weft-rdma/weft/ddp"
)

// Capacity is how many registrations a Holder remembers before it is Full.
const Capacity = 16

// A Holder gives one direction of one stream access to memory. It checks each access,
// holds the registrations of the memory that it returned, and remembers them so that
// they can be held again after a Release.
//
// While a registration is held, further accesses through the same STag need no lookup
// and no atomic update. The receiving direction calls Forget after each piece of input.
// In the sending direction frames refer to memory until they are written: it calls
// Release before it waits, Acquire before each attempt to write, and Done and Truncate
// when frames were written or dropped.
//
// A Holder is not for concurrent use and must not be copied after Init.
type Holder struct {
	table  *Table
	pd     *PD
	stream Stream
	zero   bool   // the STag of zero may be used
	first  uint64 // number of the first frame that accesses are for now
	last   uint64 // and of the last one
	recent int    // index into uses of the last hit
	denied Denial // the last access that was refused because a right is missing
	uses   []use
	inline [2]use // initial array of uses: most streams need no more
}

// An LLP acquires a Holder, as a [ddp.Guard], around each attempt to write.
var _ ddp.Guard = (*Holder)(nil)

// Init makes h the Holder of a stream of the domain pd. stream identifies it for STags
// that only one stream may use; 0 if there are none.
func (h *Holder) Init(t *Table, pd *PD, stream Stream) {
	h.Forget()
	h.table, h.pd, h.stream, h.zero = t, pd, stream, false
}

// AllowZero allows local accesses through the STag of zero (Verbs §7.2.1) until the next
// Init. It is for privileged consumers only.
func (h *Holder) AllowZero() { h.zero = true }

// SetFrames sets the numbers of the frames, from first to last, for which Resolve is called
// from now on. They never decrease, except after Truncate.
func (h *Holder) SetFrames(first, last uint64) { h.first, h.last = first, last }

// Resolve appends to dst the memory of the octets [to, to+n) of stag, if the STag is
// valid for the stream and has the rights need, and holds it until Release or Forget. It
// never waits, and allocates only to grow dst or if h is Full.
//
// The checks are, in this order: the STag is known and valid in all its 32
// bits (FaultSTag), it belongs to the stream's domain and to no other stream, or it
// is a window bound to the stream (FaultAssociation), it has the rights (FaultAccess;
// FaultSTag for a local right to a window, and for any but a local one to the STag
// of zero), to+n is at most 2^64 (FaultWrap), and every octet is in the region (FaultBounds). After a fault
// nothing is appended, and nothing more is held than before.
//
// For n == 0 nothing is checked (Verbs §7.6.3, RFC 5041 §5.2).
func (h *Holder) Resolve(dst [][]byte, stag uint32, to, n uint64, need Access) ([][]byte, ddp.Fault) {
	if n == 0 {
		return dst, ddp.NoFault
	}
	i, g, off, fault := h.look(STag(stag), to, n, need)
	if fault != ddp.NoFault {
		return dst, fault
	}
	if (i < 0 || !h.uses[i].held) && !g.hold() {
		return dst, ddp.FaultSTag
	}
	if i < 0 {
		i = len(h.uses)
		h.add(g, STag(stag))
	}
	h.uses[i].held = true
	h.uses[i].refer(h.first, h.last)
	h.recent = i
	if g.buf == nil {
		return g.scattered(dst, off, n), ddp.NoFault
	}
	return append(dst, g.buf[off:off+n:off+n]), ddp.NoFault
}

// Another is Resolve, if stag is what the last Resolve was for and its memory is in one piece.
// Otherwise, and where Resolve would fail, it returns nil, and nothing has changed. n is not 0.
func (h *Holder) Another(stag uint32, to, n uint64, need Access) []byte {
	u, b := h.another(stag, to, n, need)
	if b != nil {
		u.refer(h.first, h.last)
	}
	return b
}

// AnotherFrame is Another for the frame behind the last one.
func (h *Holder) AnotherFrame(stag uint32, to, n uint64, need Access) []byte {
	u, b := h.another(stag, to, n, need)
	if b != nil {
		h.last++
		h.first = h.last
		u.refer(h.first, h.last)
	}
	return b
}

func (h *Holder) another(stag uint32, to, n uint64, need Access) (*use, []byte) {
	if h.recent >= len(h.uses) {
		return nil, nil
	}
	u := &h.uses[h.recent]
	g := u.reg
	if u.stag != STag(stag) || !u.held || g.buf == nil || g.revoked() {
		return nil, nil
	}
	off, fault := g.locate(to, n, need)
	if fault != ddp.NoFault {
		return nil, nil
	}
	return u, g.buf[off : off+n : off+n]
}

// Check returns the fault that Resolve would return now. Nothing is held, so the result
// may be outdated when it is used.
func (h *Holder) Check(stag uint32, to, n uint64, need Access) ddp.Fault {
	if n == 0 {
		return ddp.NoFault
	}
	_, _, _, fault := h.look(STag(stag), to, n, need)
	return fault
}

// look makes the checks. i is the index of the use that remembers the registration, or
// -1; off is relative to its memory.
func (h *Holder) look(stag STag, to, n uint64, need Access) (i int, g *registration, off uint64, fault ddp.Fault) {
	if i = h.find(stag); i >= 0 {
		g = h.uses[i].reg // its domain was checked before
	} else if g, fault = h.table.valid(uint32(stag), h.pd, h.stream); fault != ddp.NoFault {
		if g = h.table.physical; stag != 0 || !h.zero || g == nil || g.revoked() {
			return i, nil, 0, fault
		}
	}
	if off, fault = g.locate(to, n, need); fault == ddp.FaultAccess {
		h.denied = Denial{Need: need, Have: g.access, Window: g.window}
	}
	return i, g, off, fault
}

// Denied returns the last access that Resolve, Check, Atomic or CheckAtomic refused with
// ddp.FaultAccess.
func (h *Holder) Denied() Denial { return h.denied }

// find returns the index of the use that remembers stag and is still valid, or -1. It
// ignores revoked ones even while they are held, so that revocation also ends the use of
// an STag that is in use all the time (RFC 5042 §6.2.2).
func (h *Holder) find(stag STag) int {
	if i := h.recent; i < len(h.uses) && h.uses[i].stag == stag && !h.uses[i].reg.revoked() {
		return i
	}
	return h.search(stag)
}

// search is find without a guess.
func (h *Holder) search(stag STag) int {
	for i := range h.uses {
		if h.uses[i].stag == stag && !h.uses[i].reg.revoked() {
			return i
		}
	}
	return -1
}

// Full reports whether h remembers Capacity registrations or more. Resolve then allocates
// for each other one: frames should be written first.
func (h *Holder) Full() bool { return len(h.uses) >= Capacity }

// Release ends all holds, and remembers them for Acquire. Memory that Resolve returned
// must not be accessed until Acquire has returned true.
func (h *Holder) Release() {
	for i := range h.uses {
		if u := &h.uses[i]; u.held {
			u.held = false
			u.reg.release()
		}
	}
}

// Acquire holds everything remembered again. It returns false, with nothing held, if any
// of it has been revoked; Revoked returns which. It never waits.
func (h *Holder) Acquire() bool {
	for i := range h.uses {
		u := &h.uses[i]
		if u.held && !u.reg.revoked() {
			continue
		}
		if u.held || !u.reg.hold() {
			h.Release()
			return false
		}
		u.held = true
	}
	return true
}

// Revoked returns the STag of a remembered registration that has been revoked, and the
// lowest frame not yet written that refers to it; of several, the one with the lowest
// frame. ok is false if all are valid.
func (h *Holder) Revoked() (stag STag, frame uint64, ok bool) {
	for i := range h.uses {
		if u := &h.uses[i]; u.reg.revoked() && (!ok || u.first() < frame) {
			stag, frame, ok = u.stag, u.first(), true
		}
	}
	return stag, frame, ok
}

// Done records that the frames below n have been written. Registrations that only they
// refer to are released and forgotten, so that their revocation affects no other frame.
func (h *Holder) Done(n uint64) {
	for i := 0; i < len(h.uses); {
		u := &h.uses[i]
		if u.last() < n {
			h.remove(i)
			continue
		}
		u.written(n)
		i++
	}
}

// Truncate records that the frames from n on have been dropped. Registrations that only
// they refer to are released and forgotten.
func (h *Holder) Truncate(n uint64) {
	for i := 0; i < len(h.uses); {
		u := &h.uses[i]
		if u.first() >= n {
			h.remove(i)
			continue
		}
		u.dropped(n)
		i++
	}
}

// remove releases and forgets a use, and moves the last one to its place.
func (h *Holder) remove(i int) {
	if h.uses[i].held {
		h.uses[i].reg.release()
	}
	end := len(h.uses) - 1
	h.uses[i], h.uses[end] = h.uses[end], h.uses[i]
	h.uses[end].forget()
	h.uses = h.uses[:end]
}

// add remembers a registration.
func (h *Holder) add(g *registration, stag STag) {
	if n := len(h.uses); n < cap(h.uses) {
		h.uses = h.uses[:n+1]
	} else {
		h.uses = append(h.uses, use{})
		clear(h.inline[:]) // its uses have moved
	}
	u := &h.uses[len(h.uses)-1]
	u.reg, u.stag, u.done = g, stag, 0
}

// Forget ends all holds and forgets everything.
func (h *Holder) Forget() {
	h.Release()
	for i := range h.uses { // for the garbage collector
		h.uses[i].forget()
	}
	h.uses = h.uses[:0]
	if cap(h.uses) == 0 || cap(h.uses) > 2*Capacity {
		h.uses = h.inline[:0]
	}
}
