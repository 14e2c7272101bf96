package verbs_test

import (
	"errors"
	"math"
	"testing"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// Verbs figure 18, by every verb that gives rights: 8 of the 16 combinations.
//
// Claims: V-7.4.1-1 V-7.4.2-1 V-7.4-1 V-9.2.6.2-7 V-9.2.6.2-8 V-9.2.6.5-5 V-9.2.6.6-4 V-9.3.1.1-15
// Claims: V-9.2.6.1-2 V-9.2.6.2-3
// Claims: D-10.3-12
func TestRightsThatGoTogether(t *testing.T) {
	const r, w = verbs.RemoteRead, verbs.RemoteWrite
	valid := map[memory.Access]bool{}
	for local, remotes := range map[memory.Access][]memory.Access{
		verbs.LocalRead: {0, r}, verbs.LocalWrite: {0, w}, verbs.LocalRead | verbs.LocalWrite: {0, r, w, r | w},
	} {
		for _, remote := range remotes {
			valid[local|remote] = true
		}
	}
	bubble(t, able, able, func(t *testing.T, s *table) {
		for access := range memory.Access(1 << 4) {
			for _, flag := range []memory.RemoteAccess{verbs.RemoteAsAccess, verbs.RemoteAllowed, verbs.RemoteForbidden} {
				ok := valid[access] && (flag != verbs.RemoteForbidden || access&(r|w) == 0)
				cfg := verbs.MRConfig{Buf: make([]byte, 8), Access: access, RemoteAccess: flag}
				mr, again := s.a.region(0, 8, verbs.LocalRead), s.a.region(0, 8, verbs.LocalRead)
				_, err := s.a.pd.RegisterMR(cfg)
				_, shared := mr.RegisterShared(s.a.pd, verbs.SharedConfig{Access: access, RemoteAccess: flag})
				for verb, err := range map[string]error{
					"register": err, "reregister": again.Reregister(s.a.pd, cfg), "register shared": shared,
				} {
					if ok && err != nil || !ok && !errors.Is(err, verbs.ErrAccess) {
						t.Errorf("%s with %v, flag %d: %v", verb, access, flag, err)
					}
				}
				if !ok {
					continue // of a Fast-Register each fault ends a stream
				}
				fr := must(s.a.pd.AllocMR(1, flag != verbs.RemoteForbidden))(t)
				s.a.post(fast(1, fr.FastRegister(cfg.Buf, access)))
				wantDone(t, s.a.sendCQ, done{1, verbs.Success})
				if a := must(fr.Query())(t); a.Access != access {
					t.Errorf("fast-registered with %v it has %v", access, a.Access)
				}
			}
		}
	})
}

// Everything that registers a region and each of its results.
//
// Claims: V-9.2.6.2-1 V-9.2.6.2-4 V-9.2.6.2-6 V-7.6.2.1-1 V-7.6.2.2-1 V-7.6.1.1-2 V-7.6.2-1 V-7.3-2 V-9.2.6.5-3
// Claims: V-7.3.2.3-2 V-7.3.2.3-3 V-9.2.6.5-5
// Claims: V-9.5.1.6-1
func TestRegisteringHasItsResults(t *testing.T) {
	const size = memory.MinPageSize
	pages, block := memory.Pages(2, size), [][]byte{make([]byte, 100)}
	gone, foreign := newSide(t, reads).pd, newSide(t, reads)
	list := func(l verbs.BufferList) verbs.MRConfig {
		return verbs.MRConfig{List: &l, Access: verbs.LocalRead, VA: uint64(l.FBO)}
	}
	buf := func(n int) verbs.MRConfig { return verbs.MRConfig{Buf: make([]byte, n), Access: verbs.LocalRead} }
	for _, tt := range []struct {
		name string
		mode verbs.Mode
		cfg  verbs.MRConfig
		pd   *verbs.PD // nil: one of the RNIC's
		want error
	}{
		{name: "a buffer", cfg: buf(8)},
		{name: "pages", cfg: list(verbs.BufferList{Buffers: pages, Size: size, FBO: 7, Length: size})},
		{name: "blocks", mode: verbs.BlockMode, cfg: list(verbs.BufferList{Buffers: block, Size: 100, FBO: 7, Length: 93})},
		{name: "blocks in Page Mode", cfg: list(verbs.BufferList{Buffers: block, Size: 100, Length: 1}), want: verbs.ErrBufferSize},
		{name: "blocks that are too small", mode: verbs.BlockMode, cfg: list(verbs.BufferList{Buffers: block, Size: 63, Length: 1}), want: verbs.ErrBufferSize},
		{name: "a page off its boundary", cfg: list(verbs.BufferList{Buffers: [][]byte{make([]byte, 2*size)[1:][:size]}, Size: size, Length: 1}), want: verbs.ErrBufferEntry},
		{name: "a first byte offset", cfg: list(verbs.BufferList{Buffers: pages, Size: size, FBO: size, Length: 1}), want: verbs.ErrFBO},
		{name: "no octets", cfg: buf(0), want: verbs.ErrLength},
		{name: "more octets than pages", cfg: list(verbs.BufferList{Buffers: pages, Size: size, Length: 2*size + 1}), want: verbs.ErrLength},
		{name: "more pages than there may be", cfg: list(verbs.BufferList{Buffers: append(pages, pages...), Size: size, Length: 1}), want: verbs.ErrResources},
		{name: "offsets that wrap", cfg: verbs.MRConfig{Buf: make([]byte, 8), Access: verbs.LocalRead, VA: math.MaxUint64}, want: verbs.ErrVA},
		{name: "a VA that does not match", cfg: verbs.MRConfig{List: &verbs.BufferList{Buffers: pages, Size: size, Length: 1}, Access: verbs.LocalRead, VA: 1}, want: verbs.ErrVA},
		{name: "rights", cfg: verbs.MRConfig{Buf: make([]byte, 8), Access: verbs.RemoteRead}, want: verbs.ErrAccess},
		{name: "a domain of another RNIC", cfg: buf(8), pd: gone, want: verbs.ErrPD},
		{name: "a queue pair of another domain", cfg: verbs.MRConfig{Buf: make([]byte, 8), Access: verbs.LocalRead, QP: foreign.qp}, want: verbs.ErrQP},
		{name: "too many octets", cfg: buf(1<<20 + 101), want: verbs.ErrResources},
	} {
		s := newSideOf(t, verbs.Config{Mode: tt.mode, Limits: verbs.Limits{Regions: 3, RegionsOctets: 1<<20 + 100 + size, ListEntries: 3}}, able)
		before := s.rnic.Usage()
		if tt.pd == nil {
			tt.pd = s.pd
			if mr, err := s.pd.RegisterMR(tt.cfg); !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
				t.Errorf("%s: register: %v, expected %v", tt.name, err, tt.want)
			} else if err == nil {
				if a := must(mr.Query())(t); !a.Valid || !mr.Valid() {
					t.Errorf("%s: registered it is %+v", tt.name, a)
				}
				check(t, mr.Deallocate())
			}
			if after := s.rnic.Usage(); after != before {
				t.Errorf("%s: register left %+v, expected %+v", tt.name, after, before)
			}
		}
		// A region that is reregistered is the new one, or gone (Verbs §7.3.2.3).
		mr := s.region(0, 8, verbs.LocalRead)
		err := mr.Reregister(tt.pd, tt.cfg)
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: reregister: %v, expected %v", tt.name, err, tt.want)
		}
		if _, query := mr.Query(); (query == nil) != (tt.want == nil) {
			t.Errorf("%s: after %v: %v", tt.name, err, query)
		}
	}
}

// Claims: V-7.3.2.3-3 V-7.3.2.3-2 V-9.2.6.5-3 V-9.2.6.4-4 V-7.9-5
func TestARegionWithWindowsStays(t *testing.T) {
	bubble(t, able, able, func(t *testing.T, s *table) {
		mr := s.a.region(0, 100, bindable)
		mw := s.a.window()
		s.a.post(bind(1, mw.Binding(mr, 0, 100, verbs.RemoteWrite)))
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
		before := must(mr.Query())(t)
		cfg := verbs.MRConfig{Buf: s.a.buf[500:600], Access: verbs.LocalRead}
		wantError(t, mr.Reregister(s.a.pd, cfg), verbs.ErrMRWindows)
		wantError(t, mr.Reregister(nil, verbs.MRConfig{}), verbs.ErrMRWindows)
		wantError(t, mr.Deallocate(), verbs.ErrMRWindows)
		wantError(t, s.a.rnic.DeallocateSTag(mr.STag().Index()), verbs.ErrMRWindows)
		if after := must(mr.Query())(t); after != before {
			t.Errorf("it became %+v, expected %+v", after, before)
		}
		s.a.buf[99] = 'x'
		s.b.receives(2, 1, 8)
		s.a.post(verbs.SendWR{ID: 3, Op: verbs.OpSend, Flags: verbs.Signaled, SGL: []verbs.SGE{mr.SGE(99, 1)}})
		wantDone(t, s.a.sendCQ, done{3, verbs.Success})

		must(mr.RegisterShared(s.a.pd, verbs.SharedConfig{Access: verbs.LocalRead}))(t)
		wantError(t, mr.Deallocate(), verbs.ErrMRWindows)
		s.a.post(inval(1, mw.STag()))
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
		wantError(t, mr.Reregister(s.a.pd, cfg), verbs.ErrSTag) // it is Shared
		check(t, mr.Deallocate())
		wantError(t, mr.Deallocate(), verbs.ErrSTag)
		wantError(t, mr.Reregister(s.a.pd, cfg), verbs.ErrSTag)
	})
}

// Claims: V-7.3.2.1-1 V-7.3.2.1-2 V-7.3.2.1-3 V-9.2.6.1-1 V-7.2-3
// Claims: V-9.2.6.1-2 V-9.2.6.1-3 V-9.2.6.1-5
func TestAllocatingAnSTagHasItsResults(t *testing.T) {
	s := newSideOf(t, verbs.Config{Limits: verbs.Limits{Regions: 2, ListEntries: 5}}, able)
	pd := must(s.rnic.AllocPD())(t)
	wantError(t, last(pd.AllocMR(6, true)), verbs.ErrResources)
	if n := s.rnic.Usage().Regions; n != 1 {
		t.Errorf("%d regions after a failure", n)
	}
	mr := must(pd.AllocMR(5, true))(t)
	want := verbs.MRAttributes{Index: mr.STag().Index(), RemoteAccess: true, PD: pd, Entries: 5}
	if got := must(mr.Query())(t); got != want || mr.Valid() || want.Index == 0 {
		t.Errorf("allocated %+v, expected %+v", got, want)
	}
	wantError(t, last(pd.AllocMR(1, true)), verbs.ErrResources)
	wantError(t, pd.Dealloc(), verbs.ErrPDInUse)
	check(t, mr.Deallocate())
	check(t, pd.Dealloc())
	wantError(t, last(pd.AllocMR(1, true)), verbs.ErrPD)
	wantError(t, last(pd.Register(s.buf, verbs.LocalRead)), verbs.ErrPD)
}

// Claims: V-7.3.2.4-1 V-7.3.2.4-2 V-7.10.1-1
func TestRegisteringSharedHasItsResults(t *testing.T) {
	const size = memory.MinPageSize
	s := newSideOf(t, verbs.Config{Limits: verbs.Limits{Regions: 5}}, able)
	mr := s.mrOf(verbs.MRConfig{
		List: &verbs.BufferList{Buffers: memory.Pages(1, size), Size: size, FBO: 8, Length: 100}, Access: verbs.LocalRead, Key: 5, VA: 8,
	})
	foreign := newSide(t, reads).pd
	pd := must(s.rnic.AllocPD())(t)
	check(t, pd.Dealloc())
	good := verbs.SharedConfig{ExistingKey: 5, Access: verbs.LocalRead, VA: 7*size + 8}
	with := func(f func(*verbs.SharedConfig)) verbs.SharedConfig {
		c := good
		f(&c)
		return c
	}
	invalid := must(s.pd.AllocMR(1, false))(t)
	before := must(mr.Query())(t)
	for _, tt := range []struct {
		name string
		mr   *verbs.MR
		pd   *verbs.PD
		cfg  verbs.SharedConfig
		want error
	}{
		{"another key", mr, s.pd, with(func(c *verbs.SharedConfig) { c.ExistingKey = 4 }), verbs.ErrSTag},
		{"Invalid", invalid, s.pd, with(func(c *verbs.SharedConfig) { c.ExistingKey = 0 }), verbs.ErrSTag},
		{"a VA that does not match", mr, s.pd, with(func(c *verbs.SharedConfig) { c.VA++ }), verbs.ErrVA},
		{"rights", mr, s.pd, with(func(c *verbs.SharedConfig) { c.Access = verbs.LocalRead | verbs.RemoteWrite }), verbs.ErrAccess},
		{"no domain", mr, nil, good, verbs.ErrPD},
		{"a domain of another RNIC", mr, foreign, good, verbs.ErrPD},
		{"a domain that is gone", mr, pd, good, verbs.ErrPD},
	} {
		if _, err := tt.mr.RegisterShared(tt.pd, tt.cfg); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, expected %v", tt.name, err, tt.want)
		}
		if after := must(mr.Query())(t); after != before {
			t.Errorf("%s: the region became %+v", tt.name, after)
		}
	}
	twin := must(mr.RegisterShared(s.pd, good))(t)
	must(twin.RegisterShared(s.pd, verbs.SharedConfig{Access: verbs.LocalRead, ZeroBased: true}))(t)
	wantError(t, last(mr.RegisterShared(s.pd, good)), verbs.ErrResources)
	check(t, mr.Deallocate())
	wantError(t, last(mr.RegisterShared(s.pd, good)), verbs.ErrSTag)
	check(t, s.rnic.Close())
	for name, err := range map[string]error{
		"register shared": last(twin.RegisterShared(s.pd, good)), "reregister": twin.Reregister(s.pd, verbs.MRConfig{}),
		"query": last(twin.Query()), "deallocate": twin.Deallocate(), "allocate": last(s.pd.AllocMR(1, true)),
		"register": last(s.pd.Register(s.buf, verbs.LocalRead)),
	} {
		if !errors.Is(err, verbs.ErrRNIC) {
			t.Errorf("%s: %v, expected %v", name, err, verbs.ErrRNIC)
		}
	}
}

// Query returns what was registered, in each state and by each verb.
//
// Claims: V-7.7-1 V-9.2.6.3-1 V-9.2.6.5-1 V-9.2.6.6-1 V-9.2.6.6-3 V-7.3.2.3-1 V-7.3.2.4-3 V-7.3.2.4-4 V-5.2-1 V-7.2-2 V-7.2-3 V-7.1-2
// Claims: V-7.2.2-4 V-7.3.2.2-1 V-7.3.2.3-5
// Claims: V-9.2.6-1 V-9.2.6.2-3 V-9.2.6.2-9 V-9.2.6.3-3 V-9.2.6.5-4 V-9.2.6.5-6 V-9.2.6.6-2 V-9.2.6.6-5 V-9.3.1.1-13 V-4-1 V-7.2-4
func TestARegionTellsWhatItIs(t *testing.T) {
	bubble(t, able, able, func(t *testing.T, s *table) {
		other := must(s.a.rnic.AllocPD())(t)
		const size = memory.MinPageSize
		mr := s.a.mrOf(verbs.MRConfig{
			List:   &verbs.BufferList{Buffers: memory.Pages(3, size), Size: size, Length: 10},
			Access: bindable, RemoteAccess: verbs.RemoteAllowed, Key: 1, VA: size,
		})
		index := mr.STag().Index()
		want := verbs.MRAttributes{Index: index, Key: 1, Valid: true, RemoteAccess: true, PD: s.a.pd, Entries: 3, Access: bindable}
		wantQuery := func(when string, mr *verbs.MR, want verbs.MRAttributes) {
			t.Helper()
			if got := must(mr.Query())(t); got != want || must(s.a.rnic.QueryMR(want.Index))(t) != want || mr.PD() != want.PD || mr.Valid() != want.Valid {
				t.Errorf("%s it is %+v, expected %+v", when, got, want)
			}
		}
		wantQuery("registered", mr, want)
		s.a.post(inval(1, mr.STag()))
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
		want.Key, want.Valid = 0, false
		wantQuery("invalidated", mr, want)
		f := mr.FastRegister(s.a.buf, verbs.LocalRead|verbs.RemoteRead)
		s.a.post(fast(2, f))
		wantDone(t, s.a.sendCQ, done{2, verbs.Success})
		want.Key, want.Valid, want.Access = 2, true, verbs.LocalRead|verbs.RemoteRead
		wantQuery("fast-registered", mr, want)
		if mr.STag() != f.STag || mr.Len() != uint64(len(s.a.buf)) {
			t.Errorf("fast-registered it is STag %v of %d octets", mr.STag(), mr.Len())
		}
		check(t, mr.Reregister(other, verbs.MRConfig{Buf: s.a.buf[:50], Access: verbs.LocalWrite, Key: 9, VA: 77}))
		want = verbs.MRAttributes{Index: index, Key: 9, Valid: true, PD: other, Entries: 3, Access: verbs.LocalWrite}
		wantQuery("reregistered", mr, want)
		if mr.Base() != 77 || mr.Len() != 50 {
			t.Errorf("reregistered it has %d octets from %d on", mr.Len(), mr.Base())
		}
		twin := must(mr.RegisterShared(s.a.pd, verbs.SharedConfig{ExistingKey: 9, Key: 4, Access: verbs.LocalRead | verbs.RemoteRead, VA: 1000}))(t)
		want.Shared = true
		wantQuery("shared", mr, want)
		wantQuery("its twin,", twin, verbs.MRAttributes{
			Index: twin.STag().Index(), Key: 4, Valid: true, Shared: true, RemoteAccess: true, PD: s.a.pd, Entries: 3, Access: verbs.LocalRead | verbs.RemoteRead,
		})
		if twin.STag().Index() == index || twin.Base() != 1000 || twin.Len() != 50 {
			t.Errorf("its twin is %v, %d octets from %d on", twin.STag(), twin.Len(), twin.Base())
		}
	})
}
