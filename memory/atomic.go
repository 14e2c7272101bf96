// This file executes atomic operations on memory.

package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages"
)

// atomicSize is the number of octets of an atomic operation (RFC 7306 §5).
const atomicSize = 8

// Atomic replaces the 64-bit value at tagged offset to of stag by the result of f, and
// returns the value before. The STag needs RemoteAtomic. Faults are those of Resolve, in
// its order, and FaultMemory if the system refuses the access. Nothing more is held
// afterwards than before.
//
// The value is in the host's octet order. The operation is atomic with respect to all
// other Atomics and to sync/atomic users of the same memory. f may be called several
// times and must have no side effects.
//
// misaligned is set if the value's address in memory (not its tagged offset) is not a
// multiple of 8; then nothing was changed.
func (h *Holder) Atomic(stag uint32, to uint64, f func(orig uint64) uint64) (orig uint64, misaligned bool, fault ddp.Fault) {
	i, g, p, fault := h.target(STag(stag), to)
	if fault != ddp.NoFault || p == nil {
		return 0, fault == ddp.NoFault, fault
	}
	if i < 0 || !h.uses[i].held {
		if !g.hold() {
			return 0, false, ddp.FaultSTag
		}
		defer g.release()
	}
	orig, err := change(p, f)
	if err != nil {
		return 0, false, ddp.FaultMemory
	}
	return orig, false, ddp.NoFault
}

// change replaces *p by the result of f. It fails if the system refuses the access.
func change(p *uint64, f func(orig uint64) uint64) (orig uint64, err error) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), atomicSize)
	if raceEnabled {
		// The race detector accesses p in C, where a fault can't be caught.
		if _, err := pages.Writable(b); err != nil {
			return 0, err
		}
	}
	defer pages.Catch(&err, [][]byte{b}, pages.Trap())
	for {
		orig = atomic.LoadUint64(p)
		if atomic.CompareAndSwapUint64(p, orig, f(orig)) {
			return orig, nil
		}
	}
}

// CheckAtomic makes the checks of Atomic without the operation. The result may be
// outdated when it is used.
func (h *Holder) CheckAtomic(stag uint32, to uint64) (misaligned bool, fault ddp.Fault) {
	_, _, p, fault := h.target(STag(stag), to)
	return fault == ddp.NoFault && p == nil, fault
}

// target returns the value of an atomic operation without holding it; p is nil if it is
// misaligned. i and g are those of look.
func (h *Holder) target(stag STag, to uint64) (i int, g *registration, p *uint64, fault ddp.Fault) {
	i, g, off, fault := h.look(stag, to, atomicSize, RemoteAtomic)
	if fault != ddp.NoFault {
		return i, nil, nil, fault
	}
	b := g.contiguous(off, atomicSize)
	if b == nil || uintptr(unsafe.Pointer(&b[0]))%atomicSize != 0 {
		return i, g, nil, ddp.NoFault
	}
	// Aligned and eight octets long.
	return i, g, (*uint64)(unsafe.Pointer(&b[0])), ddp.NoFault
}
