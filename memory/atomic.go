package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-rdma/weft/ddp"
)

// atomicSize is the number of octets that an atomic operation works on
// (RFC 7306 §5).
const atomicSize = 8

// Atomic replaces the 64-bit value at tagged offset to of stag by f of it, and
// returns what it was before. The region needs RemoteAtomic; faults are those
// of Resolve, in its order. Nothing more is held afterwards than before.
//
// The value is in the host's octet order, and the operation is atomic with
// respect to all other Atomics and to sync/atomic users of the same memory. f
// may be called several times and has no effect but its result.
//
// misaligned tells that the value's address in memory (not its tagged offset)
// is no multiple of 8; then nothing was done.
func (h *Holder) Atomic(stag uint32, to uint64, f func(orig uint64) uint64) (orig uint64, misaligned bool, fault ddp.Fault) {
	i, g, off, fault := h.look(STag(stag), to, atomicSize, RemoteAtomic)
	if fault != ddp.NoFault {
		return 0, false, fault
	}
	b := g.contiguous(off, atomicSize)
	if b == nil || uintptr(unsafe.Pointer(&b[0]))%atomicSize != 0 {
		return 0, true, ddp.NoFault
	}
	if i < 0 || !h.uses[i].held {
		if !g.hold() {
			return 0, false, ddp.FaultSTag
		}
		defer g.drop()
	}
	// Aligned and eight octets long: checked above.
	p := (*uint64)(unsafe.Pointer(&b[0]))
	for {
		orig = atomic.LoadUint64(p)
		if atomic.CompareAndSwapUint64(p, orig, f(orig)) {
			return orig, false, ddp.NoFault
		}
	}
}
