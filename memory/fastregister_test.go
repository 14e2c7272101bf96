package memory

import (
	"errors"
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// fastRegister does what is known to be possible.
func fastRegister(t testing.TB, table *Table, stag STag, pd *PD, buf []byte, access Access) {
	t.Helper()
	if err := table.FastRegister(pd, 1, stag, buf, RegionConfig{Access: access}); err != nil {
		t.Fatal(err)
	}
}

// Each check of Verbs §7.3.2.5, alone.
//
// Claims: V-7.3.2.5-1 V-7.3.2.5-2 V-7.3.2.5-3 V-7.3.2.5-4 V-7.3.2.5-5 V-5.2-6 V-9.3.1.1-15 V-7.6.1.1-2
func TestFastRegisterChecksAndChangesNothing(t *testing.T) {
	table := NewTable(Config{MaxBytes: 10 * MinPageSize})
	pd, other := table.AllocPD(), table.AllocPD()
	pages := Pages(3, MinPageSize)
	const size = MinPageSize
	local := allocRegion(t, table, pd, 2, false)
	remote := allocRegion(t, table, pd, 2, true)
	foreign := allocRegion(t, table, other, 2, true)
	valid := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead, RemoteAccess: RemoteAllowed})
	w := allocWindow(t, table, pd)
	tied := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead, Stream: 2})
	table.Invalidate(uint32(tied.STag()), pd, 2, false)
	shared := register(t, table, pd, make([]byte, 8), RegionConfig{Access: LocalRead, Shared: true})
	list := func(n int, l BufferList) RegionConfig {
		l.Buffers = pages[:n]
		return RegionConfig{List: &l, Access: anyLocal, VA: uint64(l.FBO)}
	}
	with := func(access Access) RegionConfig {
		cfg := list(2, BufferList{Size: size, Length: 1})
		cfg.Access = access
		return cfg
	}
	usage := table.Usage()
	for _, c := range []struct {
		name string
		stag STag
		cfg  RegionConfig
		want error
	}{
		{"unknown index", local.STag() ^ 0x100, with(LocalRead), ErrRegion},
		{"zero", 0, with(LocalRead), ErrRegion},
		{"window", w.STag(), with(LocalRead), ErrRegion},
		{"shared", shared.STag(), with(LocalRead), ErrRegion},
		{"another domain", foreign.STag(), with(LocalRead), ErrPD},
		{"another stream", tied.STag(), with(LocalRead), ErrPD},
		{"Valid", valid.STag(), with(LocalRead), ErrNotInvalid},
		{"Valid, with another key", valid.STag() ^ 1, with(LocalRead), ErrNotInvalid},
		{"one entry too many", remote.STag(), list(3, BufferList{Size: size, Length: 1}), ErrListLength},
		{"no rights", remote.STag(), with(0), ErrAccess},
		{"no local right", remote.STag(), with(RemoteRead), ErrAccess},
		{"write on read", remote.STag(), with(LocalRead | RemoteWrite), ErrAccess},
		{"read on write", remote.STag(), with(LocalWrite | RemoteRead), ErrAccess},
		{"remote read without the flag", local.STag(), with(anyLocal | RemoteRead), ErrAccess},
		{"remote write without the flag", local.STag(), with(anyLocal | RemoteWrite), ErrAccess},
		{"atomics without the flag", local.STag(), with(anyLocal | RemoteAtomic), ErrAccess},
		{"size", remote.STag(), list(2, BufferList{Size: size - 1, Length: 1}), ErrBufferSize},
		{"entry", remote.STag(), list(2, BufferList{Size: 2 * size, Length: 1}), ErrBufferEntry},
		{"offset", remote.STag(), list(2, BufferList{Size: size, FBO: size, Length: 1}), ErrFBO},
		{"length", remote.STag(), list(2, BufferList{Size: size, FBO: 1, Length: 2 * size}), ErrLength},
		{"no octets", remote.STag(), list(2, BufferList{Size: size}), ErrLength},
		{"VA", remote.STag(), func() RegionConfig { c := with(LocalRead); c.VA = 1; return c }(), ErrVA},
		{"wrap", remote.STag(), func() RegionConfig {
			c := list(2, BufferList{Size: size, Length: size + 1})
			c.VA = 1<<64 - size
			return c
		}(), ErrWrap},
	} {
		if err := table.FastRegister(pd, 1, c.stag, nil, c.cfg); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
		if local.Valid() || remote.Valid() || foreign.Valid() || tied.Valid() || w.Valid() || table.Usage() != usage || valid.STag().Key() != 0 {
			t.Fatalf("%s: it had an effect", c.name)
		}
	}
	if err := table.FastRegister(pd, 1, remote.STag(), make([]byte, 10*size-15), RegionConfig{Access: LocalRead}); !errors.Is(err, ErrByteLimit) {
		t.Errorf("one octet too many: %v", err)
	}

	// And what passes all of them.
	for _, c := range []struct {
		r      *Region
		access Access
	}{{local, anyLocal}, {remote, anyLocal | RemoteRead | RemoteWrite}} {
		cfg := list(2, BufferList{Size: size, FBO: 5, Length: 2*size - 5})
		cfg.Access, cfg.VA = c.access, 7*size+5
		stag := c.r.STag() | 0xAB
		if err := table.FastRegister(pd, 1, stag, nil, cfg); err != nil {
			t.Fatal(err)
		}
		a := attributes(t, table, c.r)
		if !a.Valid || a.Key != 0xAB || a.Access != c.access || a.Entries != 2 || a.RemoteAccess != (c.r == remote) || c.r.STag() != stag {
			t.Errorf("fast-registered %+v", a)
		}
		if fault := reach(table, pd, stag, 7*size+5, LocalRead); fault != ddp.NoFault {
			t.Errorf("access: %v", fault)
		}
	}
}

// Claims: V-7.8-4 V-7.3.2.5-1
func TestInvalidRegionKeepsWhatFastRegisterNeeds(t *testing.T) {
	table := NewTable(Config{})
	pd := table.AllocPD()
	pages := Pages(4, MinPageSize)
	cfg := func(n int) RegionConfig {
		return RegionConfig{List: &BufferList{pages[:n], MinPageSize, 0, 1}, Access: anyLocal | RemoteRead}
	}
	for _, c := range []struct {
		name   string
		create func() *Region
	}{
		{"allocated", func() *Region { return allocRegion(t, table, pd, 3, true) }},
		{"registered", func() *Region {
			r, err := table.Register(pd, nil, cfg(3))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}},
		{"reregistered", func() *Region {
			r := allocRegion(t, table, pd, 1, false)
			if err := table.Reregister(r, pd, nil, cfg(3)); err != nil {
				t.Fatal(err)
			}
			return r
		}},
		{"reregistered with a shorter list", func() *Region {
			r := allocRegion(t, table, pd, 3, false)
			if err := table.Reregister(r, pd, nil, cfg(1)); err != nil {
				t.Fatal(err)
			}
			return r
		}},
	} {
		r := c.create()
		for range 3 {
			table.Invalidate(uint32(r.STag()), pd, 1, false)
			if a := attributes(t, table, r); a.Valid || a.Key != 0 || a.PD != pd || a.Entries != 3 || !a.RemoteAccess {
				t.Errorf("%s: invalidated %+v", c.name, a)
			}
			if err := table.FastRegister(pd, 1, r.STag(), nil, cfg(4)); !errors.Is(err, ErrListLength) {
				t.Errorf("%s: list that is too long: %v", c.name, err)
			}
			if err := table.FastRegister(pd, 1, r.STag()^1, nil, cfg(3)); err != nil {
				t.Errorf("%s: list as long as the first: %v", c.name, err)
			}
		}
	}
}

func TestOctetsCountWhileTheyAreValid(t *testing.T) {
	table := NewTable(Config{MaxBytes: 10})
	pd := table.AllocPD()
	r := register(t, table, pd, make([]byte, 10), RegionConfig{Access: LocalRead})
	a := allocRegion(t, table, pd, 1, false)
	table.Invalidate(uint32(r.STag()), pd, 1, false)
	if u := table.Usage(); u != (Usage{Regions: 2}) {
		t.Errorf("invalidated: %+v", u)
	}
	fastRegister(t, table, a.STag(), pd, make([]byte, 4), LocalRead)
	if err := table.FastRegister(pd, 1, r.STag(), make([]byte, 7), RegionConfig{Access: LocalRead}); !errors.Is(err, ErrByteLimit) {
		t.Errorf("one octet too many: %v", err)
	}
	fastRegister(t, table, r.STag(), pd, make([]byte, 6), LocalRead)
	if u := table.Usage(); u != (Usage{Regions: 2, Bytes: 10}) {
		t.Errorf("both: %+v", u)
	}
}
