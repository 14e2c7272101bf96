package memory

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages"
)

// atomicSize is the number of octets that an atomic operation works on
// (RFC 7306 §5).
const atomicSize = 8

// Atomic replaces the 64-bit value at tagged offset to of stag by f of it, and
// returns what it was before. The region needs RemoteAtomic; faults are those
// of Resolve, in its order, and FaultMemory where the system refuses the access. Nothing
// more is held afterwards than before.
//
// The value is in the host's octet order, and the operation is atomic with
// respect to all other Atomics and to sync/atomic users of the same memory. f
// may be called several times and has no effect but its result.
//
// misaligned tells that the value's address in memory (not its tagged offset)
// is no multiple of 8; then nothing was done.
func (h *Holder) Atomic(stag uint32, to uint64, f func(orig uint64) uint64) (orig uint64, misaligned bool, fault ddp.Fault) {
	i, g, p, fault := h.target(STag(stag), to)
	if fault != ddp.NoFault || p == nil {
		return 0, fault == ddp.NoFault, fault
	}
	if i < 0 || !h.uses[i].held {
		if !g.hold() {
			return 0, false, ddp.FaultSTag
		}
		defer g.drop()
	}
	orig, err := change(p, f)
	if err != nil {
		return 0, false, ddp.FaultMemory
	}
	return orig, false, ddp.NoFault
}

// change replaces *p by f of it. The error is that the system refuses the access.
func change(p *uint64, f func(orig uint64) uint64) (orig uint64, err error) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(p)), atomicSize)
	if raceEnabled {
		// The race detector does what follows in C, where a fault is the end.
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

// CheckAtomic makes the checks of Atomic and does nothing. The answer may be
// another one at the next moment.
func (h *Holder) CheckAtomic(stag uint32, to uint64) (misaligned bool, fault ddp.Fault) {
	_, _, p, fault := h.target(STag(stag), to)
	return fault == ddp.NoFault && p == nil, fault
}

// target finds the value of an atomic operation without holding it; p is nil
// if it is misaligned. i and g are those of look.
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
