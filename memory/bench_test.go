package memory

import (
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// hot is a Holder over one region of many, as a stream at work has it.
func hot(t testing.TB) (h *Holder, stag uint32) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	_, b := words(512)
	var r *Region
	for range 1000 {
		r = register(t, table, pd, b, RegionConfig{Access: LocalRead | LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic})
	}
	h = new(Holder)
	h.Init(table, pd, 0)
	return h, uint32(r.STag())
}

func TestHotPathsAllocateNothing(t *testing.T) {
	h, stag := hot(t)
	dst := make([][]byte, 0, 4)
	add := uint64(3)
	for name, f := range map[string]func(){
		"Resolve held":   func() { _, _ = h.Resolve(dst, stag, 8, 64, RemoteWrite) },
		"Resolve anew":   func() { _, _ = h.Resolve(dst, stag, 8, 64, RemoteWrite); h.Forget() },
		"Resolve wrong":  func() { _, _ = h.Resolve(dst, stag^1, 8, 64, RemoteWrite) },
		"Check":          func() { h.Check(stag, 8, 64, RemoteWrite) },
		"Acquire":        func() { h.Acquire(); h.Release() },
		"Atomic":         func() { _, _, _ = h.Atomic(stag, 8, func(v uint64) uint64 { return v + add }) },
		"Done, Truncate": func() { _, _ = h.Resolve(dst, stag, 8, 64, LocalRead); h.Done(0); h.Truncate(0) },
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}

func BenchmarkResolveHeld(b *testing.B) {
	h, stag := hot(b)
	dst := make([][]byte, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := h.Resolve(dst, stag, 8, 64, RemoteWrite); fault != ddp.NoFault {
			b.Fatal(fault)
		}
	}
}

func BenchmarkResolveAnew(b *testing.B) {
	h, stag := hot(b)
	dst := make([][]byte, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := h.Resolve(dst, stag, 8, 64, RemoteWrite); fault != ddp.NoFault {
			b.Fatal(fault)
		}
		h.Forget()
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	h, stag := hot(b)
	_, _ = h.Resolve(nil, stag, 8, 64, LocalRead)
	b.ReportAllocs()
	for b.Loop() {
		if !h.Acquire() {
			b.Fatal("revoked")
		}
		h.Release()
	}
}

func BenchmarkAtomic(b *testing.B) {
	h, stag := hot(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, fault := h.Atomic(stag, 8, func(v uint64) uint64 { return v + 1 }); fault != ddp.NoFault {
			b.Fatal(fault)
		}
	}
}

func BenchmarkRegisterDeallocate(b *testing.B) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	buf := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		r, err := table.Register(pd, buf, RegionConfig{Access: LocalRead})
		if err != nil {
			b.Fatal(err)
		}
		if err := table.Deallocate(r); err != nil {
			b.Fatal(err)
		}
	}
}
