package memory

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// register registers what is known to be registrable.
func register(t testing.TB, table *Table, pd *PD, buf []byte, cfg RegionConfig) *Region {
	t.Helper()
	r, err := table.Register(pd, buf, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Claims: V-7.3-2 DDP-8.3.2-1 DDP-8.3.2-4 R-8.1.2-2 R-8.1.2-6
func TestRegisterRefusesAndChangesNothing(t *testing.T) {
	table := NewTable(Config{MaxRegions: 2, MaxBytes: 100})
	pd := table.AllocPD()
	register(t, table, pd, make([]byte, 60), RegionConfig{Access: LocalRead})
	freed := table.AllocPD()
	if err := table.FreePD(freed); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		pd   *PD
		size int
		cfg  RegionConfig
		want error
	}{
		{"no local right", pd, 8, RegionConfig{Access: RemoteRead}, ErrAccess},
		{"no octets", pd, 0, RegionConfig{Access: LocalRead}, ErrLength},
		{"one octet beyond the last offset", pd, 8, RegionConfig{Access: LocalRead, VA: math.MaxUint64 - 6}, ErrVA},
		{"no domain", nil, 8, RegionConfig{Access: LocalRead}, ErrPD},
		{"domain of another RNIC", NewTable(Config{}).AllocPD(), 8, RegionConfig{Access: LocalRead}, ErrPD},
		{"domain freed", freed, 8, RegionConfig{Access: LocalRead}, ErrPD},
		{"one octet too many", pd, 41, RegionConfig{Access: LocalRead}, ErrByteLimit},
	} {
		_, err := table.Register(c.pd, make([]byte, c.size), c.cfg)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", c.name, err, c.want)
		}
		if u := table.Usage(); u != (Usage{Regions: 1, Bytes: 60}) {
			t.Fatalf("%s: left %+v", c.name, u)
		}
	}

	last := register(t, table, pd, make([]byte, 40), RegionConfig{Access: LocalRead})
	if _, err := table.Register(pd, make([]byte, 1), RegionConfig{Access: LocalRead}); !errors.Is(err, ErrRegionLimit) {
		t.Errorf("third region: error %v, want %v", err, ErrRegionLimit)
	}
	if err := table.Deallocate(last); err != nil {
		t.Fatal(err)
	}
	register(t, table, pd, make([]byte, 40), RegionConfig{Access: LocalRead})
}

func TestLimitsAreWithinReason(t *testing.T) {
	for _, c := range []struct {
		cfg, want Config
	}{
		{Config{}, Config{MaxRegions: DefaultMaxRegions, MaxWindows: DefaultMaxWindows, MaxBytes: math.MaxUint64, MaxEntries: DefaultMaxEntries}},
		{Config{MaxRegions: -1, MaxBytes: 7, MaxEntries: 3}, Config{MaxRegions: DefaultMaxRegions, MaxWindows: DefaultMaxWindows, MaxBytes: 7, MaxEntries: 3}},
		{Config{MaxRegions: 1 << 24, MaxWindows: 1 << 24}, Config{MaxRegions: LimitRegions, MaxWindows: LimitWindows, MaxBytes: math.MaxUint64, MaxEntries: DefaultMaxEntries}},
	} {
		got := NewTable(c.cfg).Config()
		if got.MaxRegions != c.want.MaxRegions || got.MaxWindows != c.want.MaxWindows || got.MaxBytes != c.want.MaxBytes || got.MaxEntries != c.want.MaxEntries {
			t.Errorf("%+v: limits are those of %+v, want %+v", c.cfg, got, c.want)
		}
	}
}

// Claims: DDP-8.2-4
func TestDomainLivesAsLongAsItsRegions(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
	if err := table.FreePD(pd); !errors.Is(err, ErrPDInUse) {
		t.Errorf("free with a region: %v", err)
	}
	if err := table.Deallocate(r); err != nil {
		t.Fatal(err)
	}
	if err := table.FreePD(pd); err != nil {
		t.Errorf("free: %v", err)
	}
	if err := table.FreePD(pd); !errors.Is(err, ErrPD) {
		t.Errorf("second free: %v", err)
	}
}

// Claims: V-7.7-1
func TestRegionTellsItsAttributesInBothStates(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	buf := make([]byte, 10)
	cfg := RegionConfig{Access: LocalRead | RemoteRead, Key: 9, VA: 0x1234, Stream: 3}
	r := register(t, table, pd, buf, cfg)
	stag := r.STag()
	for _, valid := range []bool{true, false} {
		if r.Valid() != valid || r.STag() != stag || stag.Key() != 9 || r.Base() != 0x1234 || r.ZeroBased() || r.Len() != 10 ||
			r.PD() != pd || r.Stream() != 3 || r.Access() != cfg.Access || &r.Buf()[0] != &buf[0] {
			t.Errorf("valid %v: attributes differ from what was registered", valid)
		}
		if fault := table.Invalidate(uint32(stag), pd, 3, false); fault != ddp.NoFault {
			t.Fatal(fault)
		}
	}
	zero := register(t, table, pd, buf, RegionConfig{Access: LocalRead, VA: 0x1234, ZeroBased: true, Shared: true})
	if zero.Base() != 0 || !zero.ZeroBased() || !zero.Shared() || r.Shared() {
		t.Errorf("zero based region has base %#x, shared %v", zero.Base(), zero.Shared())
	}
}

// Claims: V-7.9-3
// Claims: V-7.2.2-3
func TestDeallocateTakesARegionOnceInEitherState(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	for _, invalidate := range []bool{false, true} {
		r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
		if invalidate {
			table.Invalidate(uint32(r.STag()), pd, 0, false)
		}
		if err := table.Deallocate(r); err != nil {
			t.Errorf("invalid %v: %v", invalidate, err)
		}
		if err := table.Deallocate(r); !errors.Is(err, ErrRegion) {
			t.Errorf("invalid %v, again: %v", invalidate, err)
		}
		if u := table.Usage(); u != (Usage{}) {
			t.Errorf("%+v are left", u)
		}
	}
	if err := table.Deallocate(nil); !errors.Is(err, ErrRegion) {
		t.Errorf("nil: %v", err)
	}
	foreign := NewTable(Config{})
	r := register(t, foreign, foreign.AllocPD(), make([]byte, 8), RegionConfig{Access: LocalRead})
	if err := table.Deallocate(r); !errors.Is(err, ErrRegion) || !r.Valid() {
		t.Errorf("region of another RNIC: %v, valid %v", err, r.Valid())
	}
}

// Claims: DDP-8.3.2-2 R-8.1.2-3 S-3-3 V-7.1-3 R-8.1-1
func TestOwnersShareNothing(t *testing.T) {
	type owner struct {
		table  *Table
		pd     *PD
		region *Region
	}
	var owners []owner
	one, two := NewTable(Config{}), NewTable(Config{})
	for _, table := range []*Table{one, one, two} { // two domains of an RNIC, and another RNIC
		pd := table.AllocPD()
		owners = append(owners, owner{table, pd, register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead | RemoteRead})})
	}
	for i, o := range owners {
		var h Holder
		h.Init(o.table, o.pd, 0)
		for j, other := range owners {
			if fault := h.Check(uint32(other.region.STag()), 0, 8, RemoteRead); (fault == ddp.NoFault) != (i == j) {
				t.Errorf("owner %d reaches the region of owner %d: %v", i, j, fault)
			}
			if i == j {
				continue
			}
			if fault := o.table.Invalidate(uint32(other.region.STag()), o.pd, 0, true); fault == ddp.NoFault || !other.region.Valid() {
				t.Errorf("owner %d invalidates the region of owner %d: %v", i, j, fault)
			}
		}
	}
}

// The Table is the Privileged Resource Manager of RFC 5042, the Holder the
// RNIC's engine: the engine reaches what the manager granted and nothing else.
//
// Claims: DDP-8.3-6 R-8.1.2-1 S-3-1 S-6.4.1-1 V-7.3-1
func TestHolderReachesOnlyWhatTheTableGranted(t *testing.T) {
	table := NewTable(Config{MaxRegions: 1})
	pd := table.AllocPD()
	var h Holder
	h.Init(table, pd, 0)
	r := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead})
	for stag := range uint32(1 << 16) { // other indices than that of r
		if other := stag * 0x10001; other != uint32(r.STag()) && h.Check(other, 0, 1, LocalRead) != ddp.FaultSTag {
			t.Fatalf("STag %#x is granted", other)
		}
	}
	for key := range uint32(256) {
		if other := uint32(r.STag()) ^ key; key != 0 && h.Check(other, 0, 1, LocalRead) != ddp.FaultSTag {
			t.Fatalf("STag %#x is granted, with another key than %v", other, r.STag())
		}
	}
	if fault := h.Check(uint32(r.STag()), 0, 8, LocalRead); fault != ddp.NoFault {
		t.Errorf("the granted region: %v", fault)
	}
	if _, err := table.Register(pd, make([]byte, 8), RegionConfig{Access: LocalRead}); !errors.Is(err, ErrRegionLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	table.Close()
	if fault := h.Check(uint32(r.STag()), 0, 8, LocalRead); fault != ddp.FaultSTag {
		t.Errorf("after Close: %v", fault)
	}
}

func TestCloseDeallocatesAllAndRefusesMore(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	var regions []*Region
	for range 40 {
		regions = append(regions, register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead}))
	}
	table.Close()
	for _, r := range regions {
		if r.Valid() {
			t.Fatalf("region %v is valid", r.STag())
		}
	}
	if u := table.Usage(); u != (Usage{}) {
		t.Errorf("%+v are left", u)
	}
	if _, err := table.Register(pd, make([]byte, 8), RegionConfig{Access: LocalRead}); !errors.Is(err, ErrClosed) {
		t.Errorf("register: %v", err)
	}
}

func TestDirectoryAgreesWithAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var d directory
	model := map[uint32]*object{}
	var indices []uint32
	for range 20000 {
		// Few distinct indices, so that slots are shared and freed a lot.
		index := 1 + rng.Uint32N(300)*0x10001&(1<<indexBits-1)
		if r := model[index]; r != nil {
			d.remove(r)
			delete(model, index)
		} else {
			r = &object{index: index}
			d.insert(r)
			model[index] = r
			indices = append(indices, index)
		}
		probe := indices[rng.IntN(len(indices))]
		if d.lookup(probe) != model[probe] || d.lookup(probe+1) != model[probe+1] {
			t.Fatalf("lookup of %d differs", probe)
		}
	}
	all := slices.Collect(d.all())
	if len(all) != len(model) || d.live != len(model) {
		t.Errorf("%d regions, %d counted, want %d", len(all), d.live, len(model))
	}
	s := d.slots.Load()
	if size := len(s.at); size > 16*300 {
		t.Errorf("%d slots for 300 indices: tombstones make it grow", size)
	}
	used := 0
	for i := range s.at {
		if s.at[i].Load() != nil {
			used++
		}
	}
	if used != d.used {
		t.Errorf("%d slots are used, %d counted", used, d.used)
	}
	for _, o := range all {
		d.remove(o)
	}
	if d.used != 0 || d.live != 0 {
		t.Errorf("empty, it counts %d objects and %d slots", d.live, d.used)
	}
}

// Slots whose objects come and go are emptied and taken again under the eyes of readers.
func TestAnObjectIsFoundWhileItsNeighboursComeAndGo(t *testing.T) {
	var d directory
	var stay, come []*object
	for i := range uint32(7) { // of 32 slots or more
		stay = append(stay, &object{index: 2*i + 1})
		come = append(come, &object{index: 2*i + 2})
		d.insert(stay[i])
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				for _, o := range stay {
					if d.lookup(o.index) != o {
						t.Errorf("index %d is not found", o.index)
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(3, 4))
	in := map[*object]bool{}
	for range 100_000 {
		o := come[rng.IntN(len(come))]
		if in[o] = !in[o]; in[o] {
			d.insert(o)
		} else {
			d.remove(o)
		}
	}
	close(stop)
	readers.Wait()
}
