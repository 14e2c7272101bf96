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
		"Resolve again":  func() { _, _ = h.Resolve(dst, stag, 8, 64, RemoteWrite); h.Forget() },
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

// BenchmarkResolveList is octets across two pages of a list of 32.
func BenchmarkResolveList(b *testing.B) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	list := BufferList{Buffers: Pages(32, MinPageSize), Size: MinPageSize, Length: 32 * MinPageSize}
	r := register(b, table, pd, nil, RegionConfig{List: &list, Access: LocalRead | LocalWrite | RemoteWrite})
	var h Holder
	h.Init(table, pd, 0)
	dst := make([][]byte, 0, 4)
	b.ReportAllocs()
	for b.Loop() {
		if _, fault := h.Resolve(dst, uint32(r.STag()), r.Base()+20*MinPageSize-32, 64, RemoteWrite); fault != ddp.NoFault {
			b.Fatal(fault)
		}
	}
}

// BenchmarkBindInvalidate is what a window costs that is lent for one message.
func BenchmarkBindInvalidate(b *testing.B) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	r := register(b, table, pd, make([]byte, 4096), RegionConfig{Access: LocalRead | BindWindow, RemoteAccess: RemoteAllowed})
	w := allocWindow(b, table, pd)
	b.ReportAllocs()
	for b.Loop() {
		bind(b, table, pd, 1, w, r, RemoteRead)
		if fault := table.Invalidate(uint32(w.STag()), pd, 1, false); fault != ddp.NoFault {
			b.Fatal(fault)
		}
	}
}

// BenchmarkFastRegisterInvalidate is the same of a region.
func BenchmarkFastRegisterInvalidate(b *testing.B) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	r := allocRegion(b, table, pd, 1, true)
	buf := Pages(1, MinPageSize)[0]
	b.ReportAllocs()
	for b.Loop() {
		fastRegister(b, table, r.STag(), pd, buf, LocalRead|RemoteRead)
		if fault := table.Invalidate(uint32(r.STag()), pd, 1, false); fault != ddp.NoFault {
			b.Fatal(fault)
		}
	}
}
