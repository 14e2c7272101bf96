package memory

import (
	"errors"
	"math"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// allocWindow allocates what is known to be allocatable.
func allocWindow(t testing.TB, table *Table, pd *PD) *Window {
	t.Helper()
	w, err := table.AllocWindow(pd)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// bind binds a window to all of a region, by another key than before.
func bind(t testing.TB, table *Table, pd *PD, stream Stream, w *Window, r *Region, access Access) {
	t.Helper()
	b := Binding{Window: w.STag() ^ 1, Region: r.STag(), VA: r.Base(), Length: r.Len(), Access: access}
	if err := table.Bind(pd, stream, b); err != nil {
		t.Fatal(err)
	}
}

// window queries what exists.
func window(t testing.TB, table *Table, w *Window) WindowAttributes {
	t.Helper()
	a, err := table.QueryWindow(w.Index())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Verbs figure 20, and what RFC 7306's right adds to it.
//
// Claims: V-7.10.2-6 V-7.1-2 V-9.3.1.1-12
// Claims: V-7.10.2-7
func TestWindowRightsStandOnLocalRightsOfTheRegion(t *testing.T) {
	const none, r, w, a = Access(0), RemoteRead, RemoteWrite, RemoteAtomic
	allowed := map[Access][]Access{
		LocalRead:  {r},
		LocalWrite: {w},
		anyLocal:   {r, w, r | w, a, a | r, a | w, a | r | w},
	}
	for local, yes := range allowed {
		for _, more := range []Access{0, anyRemote} { // the region's own remote rights do not matter
			region := local | more | BindWindow
			if !region.Valid() {
				continue
			}
			table := NewTable(Config{})
			pd := table.AllocPD()
			mr := register(t, table, pd, make([]byte, 8), RegionConfig{Access: region})
			for access := range Access(1 << 6) {
				want := error(ErrAccess)
				for _, y := range yes {
					if access == y {
						want = nil
					}
				}
				mw := allocWindow(t, table, pd)
				err := table.Bind(pd, 1, Binding{Window: mw.STag(), Region: mr.STag(), Length: 8, Access: access})
				if !errors.Is(err, want) || mw.Valid() != (want == nil) {
					t.Errorf("%v on a region with %v: %v, want %v", access, region, err, want)
				}
				if want == nil && window(t, table, mw).Access != access {
					t.Errorf("%v on a region with %v: it has %v", access, region, mw.Access())
				}
			}
		}
	}
}

// Each check of Verbs §7.10.6.1, alone.
//
// Claims: V-7.10.6.1-1 V-7.10.2-4 V-7.10.2-5 V-7.10.2-6 V-7.10.2-8 V-5.2-5 V-7.3.2-1 V-7.2.1-6
func TestBindChecksAndChangesNothing(t *testing.T) {
	table := NewTable(Config{})
	pd, other := table.AllocPD(), table.AllocPD()
	const base, size = 0x1001, 37
	region := func(pd *PD, cfg RegionConfig) *Region {
		cfg.VA = base
		return register(t, table, pd, make([]byte, size), cfg)
	}
	mr := region(pd, RegionConfig{Access: anyLocal | BindWindow, Key: 7})
	readable := region(pd, RegionConfig{Access: LocalRead | BindWindow})
	unbindable := region(pd, RegionConfig{Access: anyLocal | anyRemote})
	zeroBased := region(pd, RegionConfig{Access: anyLocal | BindWindow, ZeroBased: true})
	foreign := region(other, RegionConfig{Access: anyLocal | BindWindow})
	tied := region(pd, RegionConfig{Access: anyLocal | BindWindow, Stream: 2})
	invalid := region(pd, RegionConfig{Access: anyLocal | BindWindow})
	table.Invalidate(uint32(invalid.STag()), pd, 1, false)
	mw, foreignMW, bound := allocWindow(t, table, pd), allocWindow(t, table, other), allocWindow(t, table, pd)
	bind(t, table, pd, 1, bound, mr, RemoteRead)

	for _, c := range []struct {
		name string
		b    Binding
		want error
	}{
		{"no window", Binding{Window: mw.STag() ^ 0x100, Region: mr.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrWindow},
		{"a region as window", Binding{Window: invalid.STag(), Region: mr.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrWindow},
		{"zero as window", Binding{Region: mr.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrWindow},
		{"a window that is bound", Binding{Window: bound.STag() ^ 1, Region: mr.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrNotInvalid},
		{"no region", Binding{Window: mw.STag(), Region: mr.STag() ^ 0x100, VA: base, Length: 1, Access: RemoteRead}, ErrRegion},
		{"another key of the region", Binding{Window: mw.STag(), Region: mr.STag() ^ 1, VA: base, Length: 1, Access: RemoteRead}, ErrRegion},
		{"a window as region", Binding{Window: mw.STag(), Region: bound.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrRegion},
		{"zero as region", Binding{Window: mw.STag(), Length: 1, Access: RemoteRead}, ErrRegion},
		{"an Invalid region", Binding{Window: mw.STag(), Region: invalid.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrRegion},
		{"a window of another domain", Binding{Window: foreignMW.STag(), Region: mr.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrPD},
		{"a region of another domain", Binding{Window: mw.STag(), Region: foreign.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrPD},
		{"both of another domain", Binding{Window: foreignMW.STag(), Region: foreign.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrPD},
		{"a region of another stream", Binding{Window: mw.STag(), Region: tied.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrPD},
		{"a region that may not be bound to", Binding{Window: mw.STag(), Region: unbindable.STag(), VA: base, Length: 1, Access: RemoteRead}, ErrAccess},
		{"a zero based region", Binding{Window: mw.STag(), Region: zeroBased.STag(), Length: 1, Access: RemoteRead}, ErrAccess},
		{"a zero based region, zero based", Binding{Window: mw.STag(), Region: zeroBased.STag(), Length: 1, Access: RemoteRead, ZeroBased: true}, ErrAccess},
		{"no rights", Binding{Window: mw.STag(), Region: mr.STag(), VA: base, Length: 1}, ErrAccess},
		{"local rights", Binding{Window: mw.STag(), Region: mr.STag(), VA: base, Length: 1, Access: LocalRead | RemoteRead}, ErrAccess},
		{"write on read", Binding{Window: mw.STag(), Region: readable.STag(), VA: base, Length: 1, Access: RemoteRead | RemoteWrite}, ErrAccess},
		{"one octet before", Binding{Window: mw.STag(), Region: mr.STag(), VA: base - 1, Length: 1, Access: RemoteRead}, ErrBounds},
		{"begins before", Binding{Window: mw.STag(), Region: mr.STag(), VA: base - 1, Length: size, Access: RemoteRead}, ErrBounds},
		{"one octet behind", Binding{Window: mw.STag(), Region: mr.STag(), VA: base + size, Length: 1, Access: RemoteRead}, ErrBounds},
		{"ends behind", Binding{Window: mw.STag(), Region: mr.STag(), VA: base + 1, Length: size, Access: RemoteRead}, ErrBounds},
		{"zero based, from zero", Binding{Window: mw.STag(), Region: mr.STag(), Length: 1, Access: RemoteRead, ZeroBased: true}, ErrBounds},
		{"no octets", Binding{Window: mw.STag(), Region: mr.STag(), VA: base, Access: RemoteRead}, ErrBounds},
		{"wraps", Binding{Window: mw.STag(), Region: mr.STag(), VA: math.MaxUint64, Length: 2, Access: RemoteRead}, ErrWrap},
		{"wraps to the region", Binding{Window: mw.STag(), Region: mr.STag(), VA: base, Length: math.MaxUint64, Access: RemoteRead}, ErrWrap},
	} {
		if err := table.Bind(pd, 1, c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		a := attributes(t, table, mr)
		if mw.Valid() || foreignMW.Valid() || !bound.Valid() || bound.STag().Key() != 1 || a.Windows != 1 || table.bound[1] != 1 {
			t.Fatalf("%s: it had an effect", c.name)
		}
	}
}

// Claims: V-7.10.2-1 V-7.10.2-2 V-7.10.2-3 V-7.10.2-4 V-7.10.2-5 V-5.2-4
// Claims: V-9.3.1.1-11
func TestBoundWindowGivesItsPartToItsStream(t *testing.T) {
	table := NewTable(Config{})
	pd, other := table.AllocPD(), table.AllocPD()
	const base, size = 0x1001, 37
	buf := make([]byte, size)
	pages := Pages(3, MinPageSize)
	plain := register(t, table, pd, buf, RegionConfig{Access: anyLocal | BindWindow, VA: base})
	shared := register(t, table, pd, buf, RegionConfig{Access: anyLocal | BindWindow, VA: base, Shared: true})
	list, err := table.Register(pd, nil, RegionConfig{
		List:   &BufferList{[][]byte{pages[2], pages[0]}, MinPageSize, MinPageSize - 20, size},
		Access: anyLocal | BindWindow, VA: 2*MinPageSize - 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*Region{plain, shared, list} {
		for _, zeroBased := range []bool{false, true} {
			for _, part := range []struct{ off, n uint64 }{{0, size}, {0, 1}, {size - 1, 1}, {7, 25}} {
				w := allocWindow(t, table, pd)
				b := Binding{Window: w.STag() | 0xCD, Region: r.STag(), VA: r.Base() + part.off, Length: part.n, ZeroBased: zeroBased, Access: RemoteWrite}
				if err := table.Bind(pd, 1, b); err != nil {
					t.Fatal(err)
				}
				want := WindowAttributes{
					Index: w.Index(), Key: 0xCD, Valid: true, PD: pd, Access: RemoteWrite,
					Stream: 1, Region: r.Index(), Base: b.VA, Length: part.n, ZeroBased: zeroBased,
				}
				if zeroBased {
					want.Base = 0
				}
				if got := window(t, table, w); got != want || w.STag() != b.Window || w.PD() != pd {
					t.Errorf("bound %+v, want %+v", got, want)
				}
				// The domain of the Holder is not looked at, its stream is.
				for _, domain := range []*PD{pd, other} {
					var h, region Holder
					h.Init(table, domain, 1)
					region.Init(table, pd, 1)
					through, fault := h.Resolve(nil, uint32(b.Window), want.Base, part.n, RemoteWrite)
					under, _ := region.Resolve(nil, uint32(r.STag()), b.VA, part.n, LocalWrite)
					same := len(through) == len(under)
					for i := range through {
						same = same && &through[i][0] == &under[i][0] && len(through[i]) == len(under[i])
					}
					if fault != ddp.NoFault || !same {
						t.Errorf("%d octets from %d: %v, the region's octets %v", part.n, part.off, fault, same)
					}
					h.Forget()
					region.Forget()
					for _, c := range []struct {
						name string
						stag STag
						to   uint64
						n    uint64
						need Access
						want ddp.Fault
					}{
						{"an octet before", b.Window, want.Base - 1, 1, RemoteWrite, ddp.FaultBounds},
						{"an octet behind", b.Window, want.Base + part.n, 1, RemoteWrite, ddp.FaultBounds},
						{"one too many", b.Window, want.Base, part.n + 1, RemoteWrite, ddp.FaultBounds},
						{"another key", b.Window ^ 1, want.Base, 1, RemoteWrite, ddp.FaultSTag},
						{"another remote right", b.Window, want.Base, 1, RemoteRead, ddp.FaultAccess},
						{"a local right", b.Window, want.Base, 1, LocalWrite, ddp.FaultSTag},
						{"a local right of the region", b.Window, want.Base, 1, LocalRead, ddp.FaultSTag},
						{"wrap", b.Window, math.MaxUint64, 2, RemoteWrite, ddp.FaultWrap},
						{"nothing", b.Window, 0, 0, LocalRead, ddp.NoFault},
					} {
						if c.name == "an octet before" && want.Base == 0 {
							continue
						}
						if fault := h.Check(uint32(c.stag), c.to, c.n, c.need); fault != c.want {
							t.Errorf("%s: %v, want %v", c.name, fault, c.want)
						}
					}
				}
				var stranger Holder
				stranger.Init(table, pd, 2)
				if fault := stranger.Check(uint32(b.Window), want.Base, 1, RemoteWrite); fault != ddp.FaultAssociation {
					t.Errorf("another stream: %v", fault)
				}
			}
		}
	}
	if n := attributes(t, table, plain).Windows; n != 8 || table.bound[1] != 24 {
		t.Errorf("%d windows at the region and %d at the stream, want 8 and 24", n, table.bound[1])
	}
}

// Verbs §7.10.6.3, and the states of §7.10.5.
//
// Claims: V-7.10.4-1 V-7.10.4-2 V-7.10.2-8 V-7.8-6 V-7.9-5 V-9.2.6.4-4
func TestWindowIsItsStreamsWhileBoundAndItsDomainsElse(t *testing.T) {
	table := NewTable(Config{})
	pd, other := table.AllocPD(), table.AllocPD()
	for _, remote := range []bool{false, true} {
		r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: anyLocal | anyRemote | BindWindow})
		w := allocWindow(t, table, pd)
		step := func(name string, stag STag, pd *PD, stream Stream, want ddp.Fault, valid bool) {
			t.Helper()
			if fault := table.Invalidate(uint32(stag), pd, stream, remote); fault != want || w.Valid() != valid {
				t.Errorf("remote %v: %s: %v, want %v; valid %v", remote, name, fault, want, w.Valid())
			}
		}
		step("Invalid, another domain", w.STag(), other, 1, ddp.FaultAssociation, false)
		step("Invalid", w.STag(), pd, 1, ddp.NoFault, false)
		step("Invalid, another key", w.STag()^7, pd, 1, ddp.NoFault, false)
		for round := range 3 {
			bind(t, table, pd, 1, w, r, RemoteRead)
			old := w.STag()
			step("bound, another stream", old, pd, 2, ddp.FaultAssociation, true)
			step("bound, another key", old^1, pd, 1, ddp.FaultSTag, true)
			region := table.Invalidate(uint32(r.STag()), pd, 1, remote)
			if want := map[bool]ddp.Fault{false: ddp.FaultSTag, true: ddp.FaultAssociation}[remote]; region != want || !r.Valid() {
				t.Errorf("remote %v: the region under it is invalidated: %v, want %v", remote, region, want)
			}
			if err := table.Deallocate(r); !errors.Is(err, ErrWindows) || !r.Valid() {
				t.Errorf("the region under it is deallocated: %v", err)
			}
			if round == 1 { // the domain is not looked at
				step("bound", old, other, 1, ddp.NoFault, false)
			} else {
				step("bound", old, pd, 1, ddp.NoFault, false)
			}
			if fault := reach(table, pd, old, 0, RemoteRead); fault != ddp.FaultSTag {
				t.Errorf("access after it: %v", fault)
			}
			a := window(t, table, w)
			if a != (WindowAttributes{Index: w.Index(), PD: pd}) || attributes(t, table, r).Windows != 0 || len(table.bound) != 0 {
				t.Errorf("invalidated %+v", a)
			}
			bind(t, table, pd, 2, w, r, RemoteWrite) // by another stream of the domain
			if fault := reach(table, pd, old, 0, RemoteRead); fault != ddp.FaultSTag {
				t.Errorf("the old key after it was bound again: %v", fault)
			}
			step("bound by another stream", w.STag(), pd, 2, ddp.NoFault, false)
		}
		if err := table.Deallocate(r); err != nil {
			t.Errorf("the region without windows: %v", err)
		}
	}
}

// Claims: V-7.10.1-1 V-9.2.6.4-1 V-9.2.6.7-1 V-9.2.6.8-1 V-7.10.3-1 V-7.2.1-7
func TestWindowsAndRegionsAreNotMistakenForEachOther(t *testing.T) {
	table := NewTable(Config{MaxWindows: 3})
	pd := table.AllocPD()
	w, bound := allocWindow(t, table, pd), allocWindow(t, table, pd)
	r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: anyLocal | BindWindow})
	bind(t, table, pd, 1, bound, r, RemoteRead)
	if a := window(t, table, w); a != (WindowAttributes{Index: w.Index(), PD: pd}) || w.Index() == 0 {
		t.Errorf("allocated %+v", a)
	}
	for _, index := range []uint32{0, w.Index(), bound.Index(), 0xFFFFFF ^ r.Index()} {
		if _, err := table.QueryRegion(index); !errors.Is(err, ErrRegion) {
			t.Errorf("query of region %#x: %v", index, err)
		}
	}
	for _, index := range []uint32{0, r.Index(), 0xFFFFFF ^ w.Index()} {
		if _, err := table.QueryWindow(index); !errors.Is(err, ErrWindow) {
			t.Errorf("query of window %#x: %v", index, err)
		}
	}
	for _, stag := range []STag{w.STag(), bound.STag()} {
		if _, err := table.RegisterShared(stag, pd, RegionConfig{Access: LocalRead}); !errors.Is(err, ErrRegion) {
			t.Errorf("shared: %v", err)
		}
	}
	for _, c := range []struct {
		name string
		pd   *PD
		want error
	}{{"no domain", nil, ErrPD}, {"foreign domain", NewTable(Config{}).AllocPD(), ErrPD}} {
		if _, err := table.AllocWindow(c.pd); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	allocWindow(t, table, pd)
	if _, err := table.AllocWindow(pd); !errors.Is(err, ErrWindowLimit) || table.Usage().Windows != 3 {
		t.Errorf("beyond the limit: %v, %+v", err, table.Usage())
	}
	if err := table.FreePD(pd); !errors.Is(err, ErrPDInUse) {
		t.Errorf("domain with windows: %v", err)
	}

	for _, index := range []uint32{0, 0xFFFFFF ^ w.Index()} {
		if err := table.DeallocateIndex(index); !errors.Is(err, ErrRegion) {
			t.Errorf("index %#x deallocated: %v", index, err)
		}
	}
	if err := table.DeallocateIndex(r.Index()); !errors.Is(err, ErrWindows) {
		t.Errorf("region with a window deallocated: %v", err)
	}
	if err := errors.Join(table.DeallocateIndex(w.Index()), table.DeallocateWindow(bound), table.DeallocateIndex(r.Index())); err != nil {
		t.Error(err)
	}
	for _, w := range []*Window{nil, w, bound} {
		if err := table.DeallocateWindow(w); !errors.Is(err, ErrWindow) {
			t.Errorf("deallocated again: %v", err)
		}
	}
	if err := table.FreePD(pd); !errors.Is(err, ErrPDInUse) {
		t.Errorf("domain with one window: %v", err)
	}
	table.Close()
	if u := table.Usage(); u != (Usage{}) {
		t.Errorf("closed: %+v", u)
	}
	if _, err := table.AllocWindow(pd); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Claims: V-6.1.4-5
func TestRetiredStreamGetsNoWindows(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: anyLocal | BindWindow})
	for _, release := range []func(w *Window){
		func(w *Window) { table.Invalidate(uint32(w.STag()), pd, 1, false) },
		func(w *Window) { _ = table.DeallocateWindow(w) },
	} {
		w, late := allocWindow(t, table, pd), allocWindow(t, table, pd)
		bind(t, table, pd, 1, w, r, RemoteRead)
		bind(t, table, pd, 2, allocWindow(t, table, pd), r, RemoteRead)
		if err := table.RetireStream(1); !errors.Is(err, ErrStreamWindows) || !w.Valid() {
			t.Errorf("with a window: %v", err)
		}
		release(w)
		if err := table.RetireStream(1); err != nil {
			t.Errorf("without: %v", err)
		}
		err := table.Bind(pd, 1, Binding{Window: late.STag(), Region: r.STag(), Length: 8, Access: RemoteRead})
		if !errors.Is(err, ErrRetired) || late.Valid() {
			t.Errorf("bind afterwards: %v", err)
		}
		table.ForgetStream(1)
		if len(table.retired) != 0 {
			t.Error("a stream that was forgotten is remembered")
		}
	}
}
