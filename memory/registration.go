// A registration: the memory, bounds and rights of an STag from when it becomes Valid
// until it is revoked, and the atomic word that holders and revokers share.

package memory

import (
	"sync/atomic"

	"github.com/weft-rdma/weft/ddp"
)

// revokedBit is set in registration.word when it is revoked, and stays set; the other
// bits count the holders.
const revokedBit = 1 << 31

// A registration is immutable except for word. It is never made valid again.
type registration struct {
	stag   STag
	access Access
	zero   bool   // zero based
	window bool   // of a window: its stream is checked, its domain is not
	pd     *PD    // nil for a window and for the STag of zero
	stream Stream // the only one that may use it; 0 means all of pd
	base   uint64 // tagged offset of the first octet
	extent        // at least one octet, if it was ever valid; base+length is at most 2^64

	under *registration // of a window: that of its region, which it holds until it is drained

	// waited is closed when word is revoked and without holders; nil unless somebody had to
	// wait for that.
	waited atomic.Pointer[chan struct{}]

	// The word has a cache line of its own, as the fields above are two: streams that share
	// a region write it while others read them.
	word atomic.Uint32
	_    [60]byte
}

// neverValid returns the registration of a window that has never been Valid.
func neverValid() *registration {
	g := &registration{window: true}
	g.mark()
	return g
}

// hold adds a holder. It fails if the registration is revoked, and never waits.
func (g *registration) hold() bool {
	for {
		w := g.word.Load()
		if w&revokedBit != 0 {
			return false
		}
		if g.word.CompareAndSwap(w, w+1) {
			return true
		}
	}
}

// release removes a holder. The last one of a revoked registration wakes the revokers.
func (g *registration) release() {
	// hold refuses revoked registrations, so the word has this value once at most.
	if g.word.Add(^uint32(0)) == revokedBit {
		g.drain()
	}
}

// drain wakes the revokers: no octet moves through the registration any more. Until then
// a window holds its region, so that revoking the region also waits for the users of the
// window.
func (g *registration) drain() {
	if done := g.waited.Load(); done != nil {
		close(*done)
	}
	if g.under != nil {
		g.under.release()
	}
}

// drained reports that it is revoked and has no holders, which stays so.
func (g *registration) drained() bool { return g.word.Load() == revokedBit }

// await returns when the registration, which is revoked, has no holders.
func (g *registration) await() {
	if g.drained() {
		return
	}
	done := make(chan struct{})
	if !g.waited.CompareAndSwap(nil, &done) {
		done = *g.waited.Load()
	}
	// Either this sees that the last holder has left, or drain sees the channel.
	if !g.drained() {
		<-done
	}
}

func (g *registration) revoked() bool { return g.word.Load()&revokedBit != 0 }

// held reports whether it has holders, revoked or not.
func (g *registration) held() bool { return g.word.Load()&^revokedBit != 0 }

// mark revokes the registration without waiting for its holders. It returns false if it
// was revoked before.
func (g *registration) mark() bool {
	was := g.word.Or(revokedBit)
	if was == 0 { // no holders
		g.drain()
	}
	return was&revokedBit == 0
}

// locate returns the offset in the memory of the n > 0 octets at tagged offset to, if the
// registration has the rights need. Wrapping is checked before bounds, because offsets
// that wrap are always out of bounds, too.
func (g *registration) locate(to, n uint64, need Access) (off uint64, fault ddp.Fault) {
	if g.access&need != need {
		return 0, g.denial(need)
	}
	// A region may end at 2^64 exactly: the last octet, not the one after it,
	// has to have a tagged offset.
	if to+(n-1) < to {
		return 0, ddp.FaultWrap
	}
	// For an offset below base, off is beyond any length, as base+length is at most 2^64.
	off = to - g.base
	if off >= g.length || n > g.length-off {
		return 0, ddp.FaultBounds
	}
	return off, ddp.NoFault
}

// denial returns the fault of an access that lacks a right. For local work requests the
// STag of a window does not exist (Verbs §8.1.3.2), nor does zero for peers (§7.2.1).
func (g *registration) denial(need Access) ddp.Fault {
	if g.window && need&anyLocal != 0 || g.stag == 0 && need&^anyLocal != 0 {
		return ddp.FaultSTag
	}
	return ddp.FaultAccess
}
