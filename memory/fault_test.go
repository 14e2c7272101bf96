//go:build unix

package memory

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
)

// An atomic operation on memory that the system does not let this program change is
// refused, and holds nothing afterwards.
func TestAtomicOnMemoryThatFaultsIsRefused(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	mem := pagestest.Plain(t, 1)
	r := register(t, table, pd, mem, RegionConfig{Access: LocalRead | LocalWrite | RemoteAtomic})
	for _, right := range []int{unix.PROT_READ, unix.PROT_NONE} {
		pagestest.Protect(t, mem, right)
		var h Holder
		h.Init(table, pd, 0)
		orig, misaligned, fault := h.Atomic(uint32(r.STag()), 8, func(v uint64) uint64 { return v + 1 })
		if orig != 0 || misaligned || fault != ddp.FaultMemory {
			t.Errorf("rights %d: orig %#x, misaligned %v, %v", right, orig, misaligned, fault)
		}
		if len(h.uses) > 0 || r.current.Load().word.Load() != 0 {
			t.Errorf("rights %d: held afterwards", right)
		}
		h.Forget()
	}
	if err := table.Deallocate(r); err != nil {
		t.Error(err)
	}
}

// What the function of an atomic operation does wrong is not the memory's.
func TestAtomicLetsAnyOtherPanicGoOn(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	_, b := words(1)
	r := register(t, table, pd, b, RegionConfig{Access: LocalRead | LocalWrite | RemoteAtomic})
	var h Holder
	h.Init(table, pd, 0)
	defer h.Forget()
	defer func() {
		if r := recover(); r != "wrong" {
			t.Errorf("%v, expected the panic of the function", r)
		}
		if r.current.Load().word.Load() != 0 {
			t.Error("held afterwards")
		}
	}()
	h.Atomic(uint32(r.STag()), 0, func(uint64) uint64 { panic("wrong") })
}
