package memory

import (
	"math"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// Claims: DDP-8.1-1 DDP-8.2-1 DDP-8.2-2 DDP-8.2-5 DDP-8.3-1 DDP-8.3-3 DDP-8.3.1-1 DDP-8.3.1-2 DDP-8.3.1-3
// Claims: DDP-8.3.1-5 R-8.1.1-1 R-8.1.1-2 R-8.1.1-3 R-8.1.1-5 D-10.1-1 D-10.3-1 D-10.3-3 D-10.3-5 D-10.3-6 D-10.3-7
// Claims: S-2.2.4-1 S-2.2.5-1 S-6.1.1-1 S-6.1.1-2 S-6.1.1-3 S-6.2.1-1 S-6.3.1-1 S-6.3.5-1
// Claims: V-7.4-3 V-7.6.1.1-1 V-7.6.3-1 V-7.6.3-3 R-8.1-1
func TestEachAccessIsCheckedInOrder(t *testing.T) {
	table := NewTable(Config{})
	pd, other := table.AllocPD(), table.AllocPD()
	const base, size = 0x1001, 37
	const rw = LocalRead | LocalWrite
	whole := register(t, table, pd, make([]byte, size), RegionConfig{Access: rw | RemoteRead, Key: 7, VA: base})
	mine := register(t, table, pd, make([]byte, size), RegionConfig{Access: rw, Stream: 1})
	theirs := register(t, table, pd, make([]byte, size), RegionConfig{Access: rw, Stream: 2})
	foreign := register(t, table, other, make([]byte, size), RegionConfig{Access: rw})
	invalid := register(t, table, other, make([]byte, size), RegionConfig{Access: rw})
	if fault := table.Invalidate(uint32(invalid.STag()), other, 0, false); fault != ddp.NoFault {
		t.Fatal(fault)
	}

	for _, c := range []struct {
		name string
		stag STag
		to   uint64
		n    uint64
		need Access
		want ddp.Fault
	}{
		{"all octets", whole.STag(), base, size, RemoteRead, ddp.NoFault},
		{"first octet", whole.STag(), base, 1, RemoteRead, ddp.NoFault},
		{"last octet", whole.STag(), base + size - 1, 1, RemoteRead, ddp.NoFault},
		{"two rights of two", whole.STag(), base, size, rw, ddp.NoFault},
		{"own stream", mine.STag(), 0, size, LocalRead, ddp.NoFault},

		{"unknown index", whole.STag() ^ 0x100, base, 1, RemoteRead, ddp.FaultSTag},
		{"wrong key", whole.STag() ^ 1, base, 1, RemoteRead, ddp.FaultSTag},
		{"wrong top bit of the key", whole.STag() ^ 0x80, base, 1, RemoteRead, ddp.FaultSTag},
		{"invalid, before foreign", invalid.STag(), 0, 1, RemoteRead, ddp.FaultSTag},

		{"foreign domain, before rights", foreign.STag(), 0, 1, RemoteRead, ddp.FaultAssociation},
		{"foreign stream, before rights", theirs.STag(), 0, 1, RemoteRead, ddp.FaultAssociation},

		{"no right, before wrap", whole.STag(), math.MaxUint64, 2, RemoteWrite, ddp.FaultAccess},
		{"one right of two", whole.STag(), base, 1, RemoteRead | RemoteWrite, ddp.FaultAccess},
		{"no right for atomics", whole.STag(), base, 8, RemoteAtomic, ddp.FaultAccess},

		{"wrap by one, before bounds", whole.STag(), math.MaxUint64, 2, RemoteRead, ddp.FaultWrap},
		{"wrap far", whole.STag(), base, math.MaxUint64, RemoteRead, ddp.FaultWrap},

		{"octet before", whole.STag(), base - 1, 1, RemoteRead, ddp.FaultBounds},
		{"begins before", whole.STag(), base - 1, 2, RemoteRead, ddp.FaultBounds},
		{"octet behind", whole.STag(), base + size, 1, RemoteRead, ddp.FaultBounds},
		{"ends behind", whole.STag(), base, size + 1, RemoteRead, ddp.FaultBounds},
		{"last and one more", whole.STag(), base + size - 1, 2, RemoteRead, ddp.FaultBounds},
		{"offset zero", whole.STag(), 0, 1, RemoteRead, ddp.FaultBounds},
		{"very last offset", whole.STag(), math.MaxUint64, 1, RemoteRead, ddp.FaultBounds},
		{"2^32 octets more", whole.STag(), base, 1<<32 + 1, RemoteRead, ddp.FaultBounds},

		{"no octets, whatever else", 0xdeadbeef, math.MaxUint64, 0, RemoteWrite, ddp.NoFault},
		{"no octets, foreign", foreign.STag(), 0, 0, RemoteWrite, ddp.NoFault},
	} {
		for _, warm := range []bool{false, true} {
			var h Holder
			h.Init(table, pd, 1)
			if warm { // the Holder knows the region already
				_, _ = h.Resolve(nil, uint32(whole.STag()), base, 1, RemoteRead)
			}
			known := len(h.uses)
			if fault := h.Check(uint32(c.stag), c.to, c.n, c.need); fault != c.want || len(h.uses) != known {
				t.Errorf("%s, warm %v: checked: %v, want %v", c.name, warm, fault, c.want)
			}
			pieces, fault := h.Resolve(nil, uint32(c.stag), c.to, c.n, c.need)
			if fault != c.want {
				t.Errorf("%s, warm %v: %v, want %v", c.name, warm, fault, c.want)
			}
			var n uint64
			for _, p := range pieces {
				n += uint64(len(p))
			}
			if fault == ddp.NoFault && n != c.n || fault != ddp.NoFault && n != 0 {
				t.Errorf("%s, warm %v: %d octets handed out", c.name, warm, n)
			}
			if fault != ddp.NoFault && len(h.uses) != known {
				t.Errorf("%s, warm %v: refused, and yet remembered", c.name, warm)
			}
			h.Forget()
		}
	}
}

// Claims: V-7.3.1.1-1 V-7.6.1-1 V-7.6.1.2-1
func TestOffsetsFindTheirOctets(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	for _, c := range []struct {
		name string
		cfg  RegionConfig
		base uint64
	}{
		{"from VA", RegionConfig{VA: 0xffff_ffff_0001}, 0xffff_ffff_0001},
		{"from VA 0", RegionConfig{}, 0},
		{"from zero", RegionConfig{VA: 0x1000, ZeroBased: true}, 0},
		// The region may end at 2^64: its last octet is at 2^64-1, and no
		// access to it wraps.
		{"up to 2^64", RegionConfig{VA: math.MaxUint64 - 99}, math.MaxUint64 - 99},
	} {
		buf := make([]byte, 100)
		c.cfg.Access = LocalWrite
		r := register(t, table, pd, buf, c.cfg)
		if r.Base() != c.base {
			t.Errorf("%s: base %#x, want %#x", c.name, r.Base(), c.base)
		}
		var h Holder
		h.Init(table, pd, 0)
		for _, at := range []uint64{0, 1, 50, 99} {
			for _, n := range []uint64{1, 100 - at} {
				pieces, fault := h.Resolve(nil, uint32(r.STag()), c.base+at, n, LocalWrite)
				if fault != ddp.NoFault || len(pieces) != 1 || &pieces[0][0] != &buf[at] || len(pieces[0]) != int(n) {
					t.Errorf("%s: %d octets from %d: %v in %d pieces", c.name, n, at, fault, len(pieces))
				} else if cap(pieces[0]) != int(n) {
					t.Errorf("%s: %d octets from %d: %d can be reached", c.name, n, at, cap(pieces[0]))
				}
			}
		}
		_, fault := h.Resolve(nil, uint32(r.STag()), c.base, 101, LocalWrite)
		want := ddp.FaultBounds
		if c.base > math.MaxUint64-100 {
			want = ddp.FaultWrap
		}
		if fault != want {
			t.Errorf("%s: one octet too many: %v, want %v", c.name, fault, want)
		}
		h.Forget()
	}
}

// Claims: V-7.4.3-1 V-7.8-2 V-7.9-4
func TestOverlappingRegionsAreIndependent(t *testing.T) {
	table := NewTable(Config{})
	pd, other := table.AllocPD(), table.AllocPD()
	buf := make([]byte, 16)
	a := register(t, table, pd, buf, RegionConfig{Access: LocalRead})
	b := register(t, table, other, buf[4:12], RegionConfig{Access: LocalWrite})
	c := register(t, table, pd, buf, RegionConfig{Access: LocalRead | LocalWrite})
	table.Invalidate(uint32(a.STag()), pd, 0, false)
	if err := table.Deallocate(b); err != nil {
		t.Fatal(err)
	}
	if a.Valid() || b.Valid() || !c.Valid() {
		t.Errorf("valid: %v %v %v, want only the third", a.Valid(), b.Valid(), c.Valid())
	}
	var h Holder
	h.Init(table, pd, 0)
	if _, fault := h.Resolve(nil, uint32(c.STag()), 0, 16, LocalRead|LocalWrite); fault != ddp.NoFault {
		t.Errorf("third: %v", fault)
	}
	h.Forget()
}

func TestResolveAppends(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
	var h Holder
	h.Init(table, pd, 0)
	defer h.Forget()
	first := []byte("x")
	dst := [][]byte{first}
	dst, _ = h.Resolve(dst, uint32(r.STag()), 0, 3, LocalRead)
	dst, _ = h.Resolve(dst, uint32(r.STag()), 0, 9, LocalRead) // refused
	dst, _ = h.Resolve(dst, uint32(r.STag()), 0, 0, LocalRead) // nothing
	dst, _ = h.Resolve(dst, uint32(r.STag()), 3, 5, LocalRead)
	if len(dst) != 3 || &dst[0][0] != &first[0] || len(dst[1]) != 3 || len(dst[2]) != 5 {
		t.Errorf("pieces %q", dst)
	}
}

func TestHolderBeyondCapacityIsFullAndStillHolds(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	var h Holder
	h.Init(table, pd, 0)
	var regions []*Region
	for i := range Capacity + 3 {
		if full := i >= Capacity; h.Full() != full {
			t.Errorf("with %d regions full is %v", i, h.Full())
		}
		r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
		regions = append(regions, r)
		for range 2 { // the second time it is no other region
			if _, fault := h.Resolve(nil, uint32(r.STag()), 0, 8, LocalRead); fault != ddp.NoFault {
				t.Fatal(fault)
			}
		}
	}
	for i, r := range regions {
		if n := r.current.Load().word.Load(); n != 1 {
			t.Errorf("region %d has %d holders, want 1", i, n)
		}
	}
	h.Forget()
	if h.Full() {
		t.Error("full after Forget")
	}
	table.Close() // would wait forever if one were held
}
