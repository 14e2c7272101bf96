package memory

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// allocRegion allocates what is known to be allocatable.
func allocRegion(t testing.TB, table *Table, pd *PD, entries int, remote bool) *Region {
	t.Helper()
	r, err := table.AllocRegion(pd, entries, remote)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// attributes queries what exists.
func attributes(t testing.TB, table *Table, r *Region) RegionAttributes {
	t.Helper()
	a, err := table.QueryRegion(r.Index())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// reach is what a Holder of stream 1 says of the first octet of an STag.
func reach(table *Table, pd *PD, stag STag, to uint64, need Access) ddp.Fault {
	var h Holder
	h.Init(table, pd, 1)
	return h.Check(uint32(stag), to, 1, need)
}

// Claims: V-7.3.2.1-1 V-7.3.2.1-2 V-7.3.2.1-3 V-7.2.2-1 V-9.2.6.1-1
// Claims: S-6.2.1-2
func TestAllocatedSTagIsInvalidUntilItHasMemory(t *testing.T) {
	table := NewTable(Config{MaxRegions: 3, MaxEntries: 4})
	pd, foreign := table.AllocPD(), NewTable(Config{}).AllocPD()
	for _, c := range []struct {
		name    string
		pd      *PD
		entries int
		want    error
	}{
		{"foreign domain", foreign, 1, ErrPD}, {"no domain", nil, 1, ErrPD}, {"one entry too many", pd, 5, ErrEntryLimit},
	} {
		if _, err := table.AllocRegion(c.pd, c.entries, true); !errors.Is(err, c.want) || table.Usage() != (Usage{}) {
			t.Errorf("%s: %v, want %v; left %+v", c.name, err, c.want, table.Usage())
		}
	}
	for _, remote := range []bool{false, true} {
		r := allocRegion(t, table, pd, 4, remote)
		want := RegionAttributes{Index: r.Index(), RemoteAccess: remote, PD: pd, Entries: 4}
		if got := attributes(t, table, r); got != want || r.Valid() || r.Index() == 0 {
			t.Errorf("allocated %+v, want %+v", got, want)
		}
		if fault := reach(table, pd, r.STag(), 0, LocalRead); fault != ddp.FaultSTag {
			t.Errorf("access before there is memory: %v", fault)
		}
		err := table.FastRegister(pd, 1, r.STag()|5, make([]byte, 8), RegionConfig{Access: anyLocal | RemoteRead})
		if remote && err != nil || !remote && !errors.Is(err, ErrAccess) {
			t.Errorf("remote %v: fast-register with remote rights: %v", remote, err)
		}
		if remote {
			continue
		}
		if err := table.Reregister(r, pd, make([]byte, 8), RegionConfig{Access: anyLocal | RemoteRead, Key: 5}); err != nil {
			t.Errorf("reregister with remote rights: %v", err)
		}
		if fault := reach(table, pd, r.STag(), 0, RemoteRead); fault != ddp.NoFault {
			t.Errorf("access after there is memory: %v", fault)
		}
	}
	if r := allocRegion(t, table, pd, 0, false); attributes(t, table, r).Entries != 1 {
		t.Error("no entries do not become one")
	}
	if _, err := table.AllocRegion(pd, 1, false); !errors.Is(err, ErrRegionLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	table.Close()
	if _, err := table.AllocRegion(pd, 1, false); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Claims: V-7.3.2.3-1 V-7.3.2.3-5 V-9.2.6.5-1 V-9.2.6.5-2 V-7.4-2
// Claims: V-9.2.6.5-6
func TestReregisterReplacesAllButTheIndex(t *testing.T) {
	table := NewTable(Config{})
	one, two := table.AllocPD(), table.AllocPD()
	old, fresh := make([]byte, 10), make([]byte, 20)
	for _, invalid := range []bool{false, true} {
		r := register(t, table, one, old, RegionConfig{Access: LocalRead, Key: 1, VA: 7, RemoteAccess: RemoteForbidden})
		was := r.STag()
		if invalid {
			table.Invalidate(uint32(was), one, 0, false)
		}
		cfg := RegionConfig{Access: anyLocal | RemoteWrite | BindWindow, Key: 2, VA: 9, ZeroBased: true, Stream: 1}
		if err := table.Reregister(r, two, fresh, cfg); err != nil {
			t.Fatal(err)
		}
		want := RegionAttributes{
			Index: was.Index(), Key: 2, Valid: true, RemoteAccess: true, PD: two, Entries: 1, Access: cfg.Access,
		}
		if got := attributes(t, table, r); got != want {
			t.Errorf("invalid %v: reregistered %+v, want %+v", invalid, got, want)
		}
		if !r.Valid() || r.PD() != two || r.Base() != 0 || !r.ZeroBased() || r.Len() != 20 || &r.Buf()[0] != &fresh[0] || r.Stream() != 1 {
			t.Errorf("invalid %v: the region does not show the new registration", invalid)
		}
		if fault := reach(table, one, was, 7, LocalRead); fault != ddp.FaultSTag {
			t.Errorf("invalid %v: access by the old STag: %v", invalid, fault)
		}
		if fault := reach(table, two, r.STag(), 19, RemoteWrite); fault != ddp.NoFault {
			t.Errorf("invalid %v: access by the new STag: %v", invalid, fault)
		}
		if u := table.Usage(); u != (Usage{Regions: 1, Bytes: 20}) {
			t.Errorf("invalid %v: usage %+v", invalid, u)
		}
		if err := table.FreePD(one); err != nil && !invalid {
			t.Errorf("the domain that was left: %v", err)
		}
		if !invalid {
			one = table.AllocPD()
		}
		// Again and again, with lists no longer than the first.
		for range 1000 {
			if err := table.Reregister(r, two, old, cfg); err != nil {
				t.Fatal(err)
			}
		}
		if err := table.Deallocate(r); err != nil {
			t.Fatal(err)
		}
	}
}

// Claims: V-7.3.2.3-3 V-7.3.2.3-2 V-9.2.6.5-3 V-9.2.6.5-5 V-7.2.1-7
func TestFailedReregisterLeavesARegionAloneOrEndsIt(t *testing.T) {
	foreign := NewTable(Config{})
	for _, c := range []struct {
		name  string
		upset func(t *testing.T, table *Table, pd *PD, r *Region)
		pd    func(pd *PD) *PD
		size  int
		cfg   RegionConfig
		want  error
		lives bool
	}{
		{name: "shared", want: ErrRegion, lives: true, upset: func(t *testing.T, table *Table, pd *PD, r *Region) {
			if _, err := table.RegisterShared(r.STag(), pd, RegionConfig{Access: LocalRead}); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "window bound", want: ErrWindows, lives: true, upset: func(t *testing.T, table *Table, pd *PD, r *Region) {
			w := allocWindow(t, table, pd)
			bind(t, table, pd, 1, w, r, RemoteRead)
		}},
		{name: "window bound, and bad rights", want: ErrWindows, lives: true, cfg: RegionConfig{Access: RemoteRead},
			upset: func(t *testing.T, table *Table, pd *PD, r *Region) {
				bind(t, table, pd, 1, allocWindow(t, table, pd), r, RemoteRead)
			}},
		{name: "rights", want: ErrAccess, cfg: RegionConfig{Access: RemoteWrite | LocalRead}},
		{name: "rights that the flag forbids", want: ErrAccess, cfg: RegionConfig{Access: RemoteRead | LocalRead, RemoteAccess: RemoteForbidden}},
		{name: "no octets", want: ErrLength, size: -1},
		{name: "offsets that wrap", want: ErrVA, cfg: RegionConfig{Access: LocalRead, VA: 1<<64 - 7}},
		{name: "size of pages", want: ErrBufferSize, size: -1, cfg: RegionConfig{Access: LocalRead, List: &BufferList{Size: 3, Length: 1}}},
		{name: "list", want: ErrFBO, size: -1, cfg: RegionConfig{Access: LocalRead, List: &BufferList{Size: MinPageSize, FBO: MinPageSize, Length: 1}}},
		{name: "entry", want: ErrBufferEntry, size: -1, cfg: RegionConfig{Access: LocalRead, List: &BufferList{Buffers: blocks(1, 5), Size: MinPageSize, Length: 1}}},
		{name: "no domain", want: ErrPD, pd: func(*PD) *PD { return nil }},
		{name: "foreign domain", want: ErrPD, pd: func(*PD) *PD { return foreign.AllocPD() }},
		{name: "too many octets", want: ErrByteLimit, size: 101},
	} {
		table := NewTable(Config{MaxBytes: 100})
		pd := table.AllocPD()
		r := register(t, table, pd, make([]byte, 40), RegionConfig{Access: anyLocal | BindWindow})
		if c.upset != nil {
			c.upset(t, table, pd, r)
		}
		before, was := attributes(t, table, r), table.Usage()
		if c.pd != nil {
			pd = c.pd(pd)
		}
		buf := make([]byte, max(c.size, 0))
		if c.size == 0 {
			buf = make([]byte, 8)
		} else if c.size < 0 {
			buf = nil
		}
		if c.cfg.Access == 0 {
			c.cfg.Access = LocalRead
		}
		if err := table.Reregister(r, pd, buf, c.cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if c.lives {
			if after := attributes(t, table, r); after != before || table.Usage() != was {
				t.Errorf("%s: left %+v, want %+v", c.name, after, before)
			}
			continue
		}
		if _, err := table.QueryRegion(r.Index()); !errors.Is(err, ErrRegion) || r.Valid() || table.Usage() != (Usage{}) {
			t.Errorf("%s: the region lives: %v, usage %+v", c.name, err, table.Usage())
		}
		if err := table.Reregister(r, pd, buf, c.cfg); !errors.Is(err, ErrRegion) {
			t.Errorf("%s: again: %v", c.name, err)
		}
	}
	table := NewTable(Config{})
	pd := table.AllocPD()
	r := register(t, foreign, foreign.AllocPD(), make([]byte, 8), RegionConfig{Access: LocalRead})
	for _, r := range []*Region{nil, r} {
		if err := table.Reregister(r, pd, make([]byte, 8), RegionConfig{Access: LocalRead}); !errors.Is(err, ErrRegion) {
			t.Errorf("region of another RNIC: %v", err)
		}
	}
	foreign.Close()
	if err := foreign.Reregister(r, r.PD(), make([]byte, 8), RegionConfig{Access: LocalRead}); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Claims: V-7.3.2.4-1 V-7.3.2.4-2 V-9.2.6.6-4 V-7.10.1-1 V-7.2.1-7
func TestRegisterSharedChecksBothRegions(t *testing.T) {
	table := NewTable(Config{MaxRegions: 5, MaxBytes: 3 * MinPageSize, Block: false})
	pd := table.AllocPD()
	cfg := RegionConfig{Access: LocalRead, Key: 3, VA: 0x1010, List: &BufferList{Pages(1, MinPageSize), MinPageSize, 0x10, 100}}
	r, err := table.Register(pd, nil, cfg)
	if err != nil {
		t.Fatal(err)
	}
	invalid := allocRegion(t, table, pd, 1, false)
	zero := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead, ZeroBased: true})
	w := allocWindow(t, table, pd)
	huge := register(t, table, pd, make([]byte, 2*MinPageSize), RegionConfig{Access: LocalRead})
	before, usage := attributes(t, table, r), table.Usage()
	for _, c := range []struct {
		name     string
		existing STag
		pd       *PD
		cfg      RegionConfig
		want     error
	}{
		{"another key", r.STag() ^ 1, pd, RegionConfig{Access: LocalRead, VA: 0x10}, ErrRegion},
		{"unknown index", r.STag() ^ 0x100, pd, RegionConfig{Access: LocalRead, VA: 0x10}, ErrRegion},
		{"zero", 0, pd, RegionConfig{Access: LocalRead, VA: 0x10}, ErrRegion},
		{"Invalid", invalid.STag(), pd, RegionConfig{Access: LocalRead}, ErrRegion},
		{"window", w.STag(), pd, RegionConfig{Access: LocalRead}, ErrRegion},
		{"VA with another offset in its page", r.STag(), pd, RegionConfig{Access: LocalRead, VA: 0x1011}, ErrVA},
		{"offsets that wrap", zero.STag(), pd, RegionConfig{Access: LocalRead, VA: 1<<64 - 7}, ErrVA},
		{"no local right", r.STag(), pd, RegionConfig{Access: RemoteRead, VA: 0x10}, ErrAccess},
		{"write on read", r.STag(), pd, RegionConfig{Access: RemoteWrite | LocalRead, VA: 0x10}, ErrAccess},
		{"read on write", r.STag(), pd, RegionConfig{Access: RemoteRead | LocalWrite, VA: 0x10}, ErrAccess},
		{"right that the flag forbids", r.STag(), pd, RegionConfig{Access: RemoteRead | LocalRead, VA: 0x10, RemoteAccess: RemoteForbidden}, ErrAccess},
		{"no domain", r.STag(), nil, RegionConfig{Access: LocalRead, VA: 0x10}, ErrPD},
		{"too many octets", huge.STag(), pd, RegionConfig{Access: LocalRead}, ErrByteLimit},
	} {
		if _, err := table.RegisterShared(c.existing, c.pd, c.cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if after := attributes(t, table, r); after != before || table.Usage() != usage {
			t.Errorf("%s: left %+v and %+v", c.name, after, table.Usage())
		}
	}
	if _, err := table.RegisterShared(r.STag(), pd, RegionConfig{Access: LocalRead, VA: 0xF010}); err != nil {
		t.Errorf("VA with the same offset in its page: %v", err)
	}
	if _, err := table.RegisterShared(r.STag(), pd, RegionConfig{Access: LocalRead, ZeroBased: true}); !errors.Is(err, ErrRegionLimit) {
		t.Errorf("beyond the limit: %v", err)
	}
	table.Close()
	if _, err := table.RegisterShared(r.STag(), pd, RegionConfig{Access: LocalRead, VA: 0x10}); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}

// Claims: V-7.3.2.4-3 V-7.3.2.4-4 V-9.2.6.6-1 V-9.2.6.6-3 V-7.2.2-4 V-7.9-4 V-7.8-3 V-8.1.2.3.3-1
func TestSharedRegionsHaveMemoryInCommonAndNothingElse(t *testing.T) {
	table := NewTable(Config{})
	one, two := table.AllocPD(), table.AllocPD()
	buf := make([]byte, 100)
	r := register(t, table, one, buf, RegionConfig{Access: anyLocal | RemoteWrite | BindWindow, Key: 1, VA: 50})
	w := allocWindow(t, table, one)
	bind(t, table, one, 1, w, r, RemoteRead)
	before := attributes(t, table, r)
	twin, err := table.RegisterShared(r.STag(), two, RegionConfig{Access: LocalRead | RemoteRead, Key: 9, VA: 1000})
	if err != nil {
		t.Fatal(err)
	}
	third, err := table.RegisterShared(twin.STag(), one, RegionConfig{Access: LocalWrite, ZeroBased: true, Stream: 1})
	if err != nil {
		t.Fatal(err)
	}
	before.Shared = true
	if after := attributes(t, table, r); after != before {
		t.Errorf("the existing region became %+v, want %+v", after, before)
	}
	want := RegionAttributes{Index: twin.Index(), Key: 9, Valid: true, Shared: true, RemoteAccess: true, PD: two, Entries: 1, Access: LocalRead | RemoteRead}
	if got := attributes(t, table, twin); got != want || twin.Index() == r.Index() || twin.Base() != 1000 || twin.Len() != 100 {
		t.Errorf("the new region is %+v, want %+v", got, want)
	}
	for _, c := range []struct {
		name string
		pd   *PD
		r    *Region
		need Access
	}{{"existing", one, r, RemoteWrite}, {"new", two, twin, RemoteRead}, {"newest", one, third, LocalWrite}} {
		var h Holder
		h.Init(table, c.pd, 1)
		pieces, fault := h.Resolve(nil, uint32(c.r.STag()), c.r.Base()+99, 1, c.need)
		if fault != ddp.NoFault || &pieces[0][0] != &buf[99] {
			t.Errorf("%s region: %v, or other memory", c.name, fault)
		}
		h.Forget()
		for _, remote := range []bool{false, true} {
			fault := table.Invalidate(uint32(c.r.STag()), c.pd, 1, remote)
			if want := map[bool]ddp.Fault{false: ddp.FaultSTag, true: ddp.FaultAssociation}[remote]; fault != want || !c.r.Valid() {
				t.Errorf("%s region invalidated, remote %v: %v, want %v", c.name, remote, fault, want)
			}
		}
		if err := table.FastRegister(c.pd, 1, c.r.STag(), buf, RegionConfig{Access: LocalRead}); !errors.Is(err, ErrRegion) {
			t.Errorf("%s region fast-registered: %v", c.name, err)
		}
		if err := table.Reregister(c.r, c.pd, buf, RegionConfig{Access: LocalRead}); !errors.Is(err, ErrRegion) || !c.r.Valid() {
			t.Errorf("%s region reregistered: %v", c.name, err)
		}
	}
	if fault := reach(table, two, w.STag(), 50, RemoteRead); fault != ddp.NoFault {
		t.Errorf("the window that was bound: %v", fault)
	}
	if err := table.Deallocate(twin); err != nil {
		t.Fatal(err)
	}
	if fault := reach(table, one, third.STag(), 0, LocalWrite); fault != ddp.NoFault || !r.Valid() {
		t.Errorf("after the region between them has gone: %v", fault)
	}
}
