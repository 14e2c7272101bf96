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
	pd     *PD
	stream Stream
	base   uint64 // tagged offset of the first octet
	buf    []byte // at least one octet; base+len(buf) is at most 2^64

	drained chan struct{} // closed when word is revoked and without holders

	// The word has a cache line of its own: streams that share a region write
	// it while others read what is above.
	_    [64]byte
	word atomic.Uint32
	_    [60]byte
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
		close(g.drained)
	}
}

func (g *registration) revoked() bool { return g.word.Load()&revokedBit != 0 }

// revoke ends the registration and returns when nobody holds it any more,
// whoever revoked it first. The caller holds no registration and no lock.
func (g *registration) revoke() {
	if g.word.Or(revokedBit) == 0 { // the first revoker, and nobody held it
		close(g.drained)
	}
	<-g.drained
}

// locate says where in buf the n > 0 octets at tagged offset to lie, if need
// is among the rights. Wrapping is judged before bounds, which it always
// violates too.
func (g *registration) locate(to, n uint64, need Access) (off uint64, fault ddp.Fault) {
	if g.access&need != need {
		return 0, ddp.FaultAccess
	}
	// A region may end at 2^64 exactly: the last octet, not the one after it,
	// has to have a tagged offset.
	if to+(n-1) < to {
		return 0, ddp.FaultWrap
	}
	// An offset below base comes out beyond any length, base+len being at most 2^64.
	off = to - g.base
	size := uint64(len(g.buf))
	if off >= size || n > size-off {
		return 0, ddp.FaultBounds
	}
	return off, ddp.NoFault
}

// pieces appends the memory of n octets from off on, which locate has allowed.
func (g *registration) pieces(dst [][]byte, off, n uint64) [][]byte {
	return append(dst, g.buf[off:off+n:off+n])
}

// contiguous is the same memory when it is in one piece, else nil.
func (g *registration) contiguous(off, n uint64) []byte {
	return g.buf[off : off+n : off+n]
}
