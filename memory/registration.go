// One registration: the memory, bounds and rights of an STag from the moment
// it becomes Valid until it is revoked, and the word that revocation turns on.

package memory

import (
	"sync/atomic"

	"github.com/weft-rdma/weft/ddp"
)

// revokedBit is set in registration.word for ever once revocation began; the
// other bits count the holders.
const revokedBit = 1 << 31

// A registration is immutable but for word. It is never made valid again.
type registration struct {
	stag   STag
	access Access
	zero   bool   // zero based
	window bool   // of a window: its stream is looked at, its domain is not
	pd     *PD    // nil for a window and for the STag of zero
	stream Stream // the only one that may use it; 0 means all of pd
	base   uint64 // tagged offset of the first octet
	extent        // at least one octet, if it ever was valid; base+length is at most 2^64

	under   *registration // of a window: that of its region, which it holds until it is drained
	drained chan struct{} // closed when word is revoked and without holders

	// The word has a cache line of its own: streams that share a region write
	// it while others read what is above.
	_    [64]byte
	word atomic.Uint32
	_    [60]byte
}

// neverValid is what an object has that has not become Valid yet.
func neverValid(window bool) *registration {
	g := &registration{window: window, drained: make(chan struct{})}
	g.mark()
	return g
}

// hold counts a holder in. It fails when the registration is revoked, and
// never waits.
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

// drop counts a holder out; the last one out of a revoked registration wakes
// the revokers.
func (g *registration) drop() {
	// hold refuses revoked registrations, so this value comes up once at most.
	if g.word.Add(^uint32(0)) == revokedBit {
		g.drain()
	}
}

// drain tells that no octet moves by the registration any more. Until then a window
// holds its region, so that who ends the region waits for the window's users, too.
func (g *registration) drain() {
	close(g.drained)
	if g.under != nil {
		g.under.drop()
	}
}

func (g *registration) revoked() bool { return g.word.Load()&revokedBit != 0 }

// held reports that somebody holds it, revoked or not.
func (g *registration) held() bool { return g.word.Load()&^revokedBit != 0 }

// mark revokes the registration without waiting for its holders. It reports
// false if that was done before.
func (g *registration) mark() bool {
	was := g.word.Or(revokedBit)
	if was == 0 { // nobody held it
		g.drain()
	}
	return was&revokedBit == 0
}

// locate says where in the memory the n > 0 octets at tagged offset to lie, if need
// is among the rights. Wrapping is judged before bounds, which it always
// violates too.
func (g *registration) locate(to, n uint64, need Access) (off uint64, fault ddp.Fault) {
	if g.access&need != need {
		return 0, g.denial(need)
	}
	// A region may end at 2^64 exactly: the last octet, not the one after it,
	// has to have a tagged offset.
	if to+(n-1) < to {
		return 0, ddp.FaultWrap
	}
	// An offset below base comes out beyond any length, base+length being at most 2^64.
	off = to - g.base
	if off >= g.length || n > g.length-off {
		return 0, ddp.FaultBounds
	}
	return off, ddp.NoFault
}

// denial is the fault of an access that lacks a right. A window is no STag for local
// work requests at all (Verbs §8.1.3.2), and zero is none for peers (§7.2.1).
func (g *registration) denial(need Access) ddp.Fault {
	if g.window && need&anyLocal != 0 || g.stag == 0 && need&^anyLocal != 0 {
		return ddp.FaultSTag
	}
	return ddp.FaultAccess
}
