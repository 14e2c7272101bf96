package memory

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"unsafe"

	"github.com/weft-rdma/weft/ddp"
)

// words is memory of n aligned 64-bit values, as values and as octets.
func words(n int) ([]uint64, []byte) {
	w := make([]uint64, n+1)
	// 32-bit hosts align to four octets only.
	if uintptr(unsafe.Pointer(&w[0]))%8 != 0 {
		b := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(&w[0]), 4)), 8*n)
		return unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), n), b
	}
	return w[:n], unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), 8*n)
}

// Claims: X-5-1 X-5.1.1-8 X-5.2.1-9
// Claims: X-5.1.2-4
func TestAtomicWorksOnTheHostsValue(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	w, b := words(3)
	w[0], w[1], w[2] = 1, 0x0102030405060708, 3
	r := register(t, table, pd, b, RegionConfig{Access: LocalRead | LocalWrite | RemoteAtomic, VA: 0x1001})
	var h Holder
	h.Init(table, pd, 0)
	defer h.Forget()
	// The tagged offset need not be a multiple of 8; the address has to.
	orig, misaligned, fault := h.Atomic(uint32(r.STag()), 0x1009, func(v uint64) uint64 { return v + 1 })
	if orig != 0x0102030405060708 || misaligned || fault != ddp.NoFault {
		t.Errorf("orig %#x, misaligned %v, %v", orig, misaligned, fault)
	}
	if len(h.uses) > 0 || r.current.Load().word.Load() != 0 {
		t.Error("held afterwards")
	}
	if w[0] != 1 || w[1] != 0x0102030405060709 || w[2] != 3 {
		t.Errorf("memory %#x", w)
	}
}

// Claims: X-5.1-1 X-5.1.1-5 X-5.1.1-7 X-5.1.2-6 X-5.1.2-7 X-8.2-4
func TestAtomicIsRefusedBeforeMemoryIsTouched(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	w, b := words(2)
	w[0], w[1] = 5, 6
	rights := LocalRead | LocalWrite | RemoteRead | RemoteWrite
	r := register(t, table, pd, b, RegionConfig{Access: rights | RemoteAtomic})
	plain := register(t, table, pd, b, RegionConfig{Access: rights})
	odd := register(t, table, pd, b[1:], RegionConfig{Access: rights | RemoteAtomic, VA: 8})
	foreign := register(t, table, table.AllocPD(), b, RegionConfig{Access: rights | RemoteAtomic})
	var h Holder
	h.Init(table, pd, 0)
	defer h.Forget()
	for _, c := range []struct {
		name       string
		stag       STag
		to         uint64
		misaligned bool
		fault      ddp.Fault
	}{
		{"unknown", r.STag() ^ 1, 0, false, ddp.FaultSTag},
		{"foreign", foreign.STag(), 0, false, ddp.FaultAssociation},
		{"no right", plain.STag(), 0, false, ddp.FaultAccess},
		{"wraps, before bounds", r.STag(), 1<<64 - 4, false, ddp.FaultWrap},
		{"half behind, before misaligned", r.STag(), 12, false, ddp.FaultBounds},
		{"behind", r.STag(), 16, false, ddp.FaultBounds},
		{"odd", r.STag(), 1, true, ddp.NoFault},
		{"by two", r.STag(), 2, true, ddp.NoFault},
		{"by three", r.STag(), 3, true, ddp.NoFault},
		{"by four", r.STag(), 4, true, ddp.NoFault},
		{"by five", r.STag(), 5, true, ddp.NoFault},
		{"by six", r.STag(), 6, true, ddp.NoFault},
		{"by seven", r.STag(), 7, true, ddp.NoFault},
		{"aligned offset, odd address", odd.STag(), 8, true, ddp.NoFault},
	} {
		called := false
		_, misaligned, fault := h.Atomic(uint32(c.stag), c.to, func(uint64) uint64 { called = true; return 0 })
		if misaligned != c.misaligned || fault != c.fault || called {
			t.Errorf("%s: misaligned %v, %v, done %v; want %v, %v", c.name, misaligned, fault, called, c.misaligned, c.fault)
		}
	}
	if w[0] != 5 || w[1] != 6 {
		t.Errorf("memory %#x", w)
	}
}

func TestAtomicTouchesNothingOnceRevocationBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := NewTable(Config{})
		pd := table.AllocPD()
		w, b := words(1)
		r := register(t, table, pd, b, RegionConfig{Access: LocalRead | LocalWrite | RemoteAtomic})
		var h Holder
		h.Init(table, pd, 0)
		defer h.Forget()
		done := make(chan error, 1)
		_, misaligned, fault := h.Atomic(uint32(r.STag()), 0, func(v uint64) uint64 {
			// Revocation that begins in the midst of it waits for its end.
			if v == 0 {
				go func() { done <- table.Deallocate(r) }()
				synctest.Wait()
				select {
				case <-done:
					t.Error("deallocated in the midst of an atomic operation")
				default:
				}
			}
			return v + 1
		})
		if misaligned || fault != ddp.NoFault || w[0] != 1 {
			t.Errorf("misaligned %v, %v, value %d", misaligned, fault, w[0])
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, _, fault := h.Atomic(uint32(r.STag()), 0, func(v uint64) uint64 { return v + 1 }); fault != ddp.FaultSTag || w[0] != 1 {
			t.Errorf("after deallocation: %v, value %d", fault, w[0])
		}
	})
}

// Ruling: atomic with respect to other streams and to sync/atomic users.
//
// Claims: X-5-2 X-5.3-1 X-5.4-3
func TestAtomicsOfStreamsAndProgramDoNotLoseUpdates(t *testing.T) {
	const each = 2000
	table := NewTable(Config{})
	pd := table.AllocPD()
	w, b := words(1)
	r := register(t, table, pd, b, RegionConfig{Access: LocalRead | LocalWrite | RemoteAtomic})
	var wg sync.WaitGroup
	var seen [2 * each]atomic.Bool // what the streams found: each value once
	for range 2 {
		wg.Go(func() {
			var h Holder
			h.Init(table, pd, 0)
			defer h.Forget()
			for range each {
				found, misaligned, fault := h.Atomic(uint32(r.STag()), 0, func(v uint64) uint64 { return v + 1 })
				if misaligned || fault != ddp.NoFault {
					t.Errorf("misaligned %v, %v", misaligned, fault)
					return
				}
				if n := uint32(found); n >= 2*each || seen[n].Swap(true) {
					t.Errorf("found %d, which is out of range or was found before", n)
					return
				}
			}
		})
		wg.Go(func() {
			for range each {
				atomic.AddUint64(&w[0], 1<<32)
			}
		})
	}
	wg.Wait()
	if want := uint64(2*each<<32 + 2*each); w[0] != want {
		t.Errorf("sum %#x, want %#x", w[0], want)
	}
}
