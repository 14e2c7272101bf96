package verbs_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// Verbs figure 18, by every verb that gives rights: 8 of the 16 combinations.
//
// Claims: V-7.4.1-1 V-7.4.2-1 V-7.4-1 V-9.2.6.2-7 V-9.2.6.2-8 V-9.2.6.5-5 V-9.2.6.6-4 V-9.3.1.1-15
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
		{name: "more pages than there may be", cfg: list(verbs.BufferList{Buffers: append(pages, pages...), Size: size, Length: 1}), want: verbs.ErrLength},
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

// What was registered is told again, in each state and by each verb.
//
// Claims: V-7.7-1 V-9.2.6.3-1 V-9.2.6.5-1 V-9.2.6.6-1 V-9.2.6.6-3 V-7.3.2.3-1 V-7.3.2.4-3 V-7.3.2.4-4 V-5.2-1 V-7.2-2 V-7.2-3 V-7.1-2
// Claims: V-7.2.2-4 V-7.3.2.2-1 V-7.3.2.3-5
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
		tell := func(when string, mr *verbs.MR, want verbs.MRAttributes) {
			t.Helper()
			if got := must(mr.Query())(t); got != want || must(s.a.rnic.QueryMR(want.Index))(t) != want || mr.PD() != want.PD || mr.Valid() != want.Valid {
				t.Errorf("%s it is %+v, expected %+v", when, got, want)
			}
		}
		tell("registered", mr, want)
		s.a.post(inval(1, mr.STag()))
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
		want.Key, want.Valid = 0, false
		tell("invalidated", mr, want)
		f := mr.FastRegister(s.a.buf, verbs.LocalRead|verbs.RemoteRead)
		s.a.post(fast(2, f))
		wantDone(t, s.a.sendCQ, done{2, verbs.Success})
		want.Key, want.Valid, want.Access = 2, true, verbs.LocalRead|verbs.RemoteRead
		tell("fast-registered", mr, want)
		if mr.STag() != f.STag || mr.Len() != uint64(len(s.a.buf)) {
			t.Errorf("fast-registered it is STag %v of %d octets", mr.STag(), mr.Len())
		}
		check(t, mr.Reregister(other, verbs.MRConfig{Buf: s.a.buf[:50], Access: verbs.LocalWrite, Key: 9, VA: 77}))
		want = verbs.MRAttributes{Index: index, Key: 9, Valid: true, PD: other, Entries: 3, Access: verbs.LocalWrite}
		tell("reregistered", mr, want)
		if mr.Base() != 77 || mr.Len() != 50 {
			t.Errorf("reregistered it has %d octets from %d on", mr.Len(), mr.Base())
		}
		twin := must(mr.RegisterShared(s.a.pd, verbs.SharedConfig{ExistingKey: 9, Key: 4, Access: verbs.LocalRead | verbs.RemoteRead, VA: 1000}))(t)
		want.Shared = true
		tell("shared", mr, want)
		tell("its twin,", twin, verbs.MRAttributes{
			Index: twin.STag().Index(), Key: 4, Valid: true, Shared: true, RemoteAccess: true, PD: s.a.pd, Entries: 3, Access: verbs.LocalRead | verbs.RemoteRead,
		})
		if twin.STag().Index() == index || twin.Base() != 1000 || twin.Len() != 50 {
			t.Errorf("its twin is %v, %d octets from %d on", twin.STag(), twin.Len(), twin.Base())
		}
	})
}

// Data goes through regions over lists of pages and of blocks, in all roles: what was
// put in at one end in order is found at the other in order.
//
// Claims: V-7.6.2-1 V-7.6.2.1-1 V-7.6.2.2-1 V-7.6.1-1 V-7.6.1.1-1 V-7.6.1.2-1 V-7.3.1.1-1 V-9.2.6.2-6 V-7.3.2.2-1
func TestDataIsWhereTheListSays(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		for _, mode := range []verbs.Mode{verbs.PageMode, verbs.BlockMode} {
			for _, zeroBased := range []bool{false, true} {
				size, fbo, entries := memory.MinPageSize, 123, 9
				buffers := memory.Pages(2*entries, size)
				if mode == verbs.BlockMode {
					size = 5001
					all := make([]byte, 3*entries*size)
					for i := range buffers {
						buffers[i] = all[i*size+i:][:size]
					}
				}
				rand.Shuffle(len(buffers), func(i, j int) { buffers[i], buffers[j] = buffers[j], buffers[i] })
				n := entries*size - fbo - 7
				cfg := able
				a, b := newSideOf(t, verbs.Config{Mode: mode}, cfg), newSideOf(t, verbs.Config{Mode: mode}, cfg)
				w.connect(t, a.qp, b.qp, cm.Params{})
				ends := [2]*verbs.MR{}
				va := uint64(size)<<20 + uint64(fbo)
				at := func(end, i int) *byte { return &buffers[end*entries+(fbo+i)/size][(fbo+i)%size] }
				for i, s := range []*side{a, b} {
					ends[i] = s.mrOf(verbs.MRConfig{
						List:   &verbs.BufferList{Buffers: buffers[i*entries:][:entries], Size: size, FBO: fbo, Length: uint64(n)},
						Access: allRights, VA: va, ZeroBased: zeroBased,
					})
				}
				if base := ends[0].Base(); base != va && !zeroBased || base != 0 && zeroBased {
					t.Fatalf("the base is %#x", base)
				}
				for _, op := range []verbs.Op{verbs.OpWrite, verbs.OpRead, verbs.OpSend} {
					source, sink := 0, 1
					if op == verbs.OpRead {
						source, sink = 1, 0
					}
					for i := range n {
						*at(source, i), *at(sink, i) = byte(i*7+i>>8+int(op)), 0
					}
					wr := verbs.SendWR{ID: 1, Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{ends[0].SGE(0, n)}, Remote: ends[1].Remote(0)}
					if op == verbs.OpSend {
						check(t, b.qp.PostRecv(verbs.RecvWR{ID: 2, SGL: []verbs.SGE{ends[1].SGE(0, 10), ends[1].SGE(10, n-10)}}))
					}
					a.post(wr, a.read(3, b, 0, 0)) // whose answer says that all is placed
					wantDone(t, a.sendCQ, done{1, verbs.Success}, done{3, verbs.Success})
					if op == verbs.OpSend {
						wantDone(t, b.recvCQ, done{2, verbs.Success})
					}
					for i := range n {
						if *at(sink, i) != byte(i*7+i>>8+int(op)) {
							t.Fatalf("%v, %v, zero based %v: octet %d is another", mode, op, zeroBased, i)
						}
					}
				}
			}
		}
	})
}

// A Fast-Register's list is read when it is executed and may be used again once it is
// complete; its memory lives as long as the registration.
//
// Claims: V-7.3.2.5-7 V-7.3.2.5-1
func TestAFastRegisteredListKeepsItsMemory(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		const size, n = memory.MinPageSize, 3
		a, b := linked(t, w, able, able)
		mr := must(b.pd.AllocMR(n, true))(t)
		a.post(a.write(0, b, 0, 0))
		wantDone(t, a.sendCQ, done{0, verbs.Success})
		list := memory.Pages(n, size)
		list[0], list[2] = list[2], list[0]
		for round := range 20 {
			f := mr.FastRegister(nil, allRights)
			f.List = verbs.BufferList{Buffers: list, Size: size, FBO: 5, Length: n*size - 5}
			f.ZeroBased = true
			wr := fast(1, f)
			b.post(wr)
			*wr.FastRegister = verbs.FastRegister{} // nothing of it is retained but the list
			wantDone(t, b.sendCQ, done{1, verbs.Success})
			was := append([][]byte(nil), list...)
			clear(list)
			runtime.GC()
			for i := range a.buf[:n*size-5] {
				a.buf[i] = byte(i + i>>8 + round)
			}
			a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, n*size-5)}, Remote: mr.Remote(0)}, a.read(2, b, 0, 0))
			wantDone(t, a.sendCQ, done{2, verbs.Success})
			for i := range n*size - 5 {
				if was[(i+5)/size][(i+5)%size] != byte(i+i>>8+round) {
					t.Fatalf("round %d: octet %d is another", round, i)
				}
			}
			copy(list, was)
			b.post(inval(2, f.STag))
			wantDone(t, b.sendCQ, done{2, verbs.Success})
		}
	})
}

// Regions over the same memory live and die by themselves.
//
// Claims: V-7.4.3-1 V-7.8-2 V-7.9-4 V-9.2.6.4-1 V-9.2.6.4-3
func TestSharedTwinsAreReachedEachByItsOwnRights(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, able, able)
		mr := b.mrOf(verbs.MRConfig{Buf: b.buf[1000:1100], Access: verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite})
		twin := must(mr.RegisterShared(b.pd, verbs.SharedConfig{Access: verbs.LocalRead | verbs.RemoteRead, VA: 1 << 50}))(t)
		copy(a.buf, "the same octets")
		a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 15)}, Remote: mr.Remote(5)},
			verbs.SendWR{ID: 1, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(100, 15)}, Remote: twin.Remote(5)})
		wantDone(t, a.sendCQ, done{1, verbs.Success})
		if got := string(a.buf[100:115]); got != "the same octets" {
			t.Errorf("read %q", got)
		}
		check(t, mr.Deallocate())
		a.post(verbs.SendWR{ID: 2, Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(100, 15)}, Remote: twin.Remote(5)})
		wantDone(t, a.sendCQ, done{2, verbs.Success})
		a.post(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{a.mr.SGE(0, 15)}, Remote: twin.Remote(5)})
		b.wantEvents(verbs.EventProtectionAccess)
	})
}

// Claims: V-7.2.1-3 V-7.2.1-4 V-8.1.3.2.1-2
func TestZeroNamesThePhysicalMemoryOfThePrivileged(t *testing.T) {
	physical := make([]byte, 200)
	zero := func(to uint64, n uint32) []verbs.SGE { return []verbs.SGE{{TO: to, Length: n}} }
	for _, tt := range []struct {
		name     string
		cfg      verbs.QPConfig
		physical []byte
		want     verbs.Status
	}{
		{"privileged", able, physical, verbs.Success},
		{"not privileged", verbs.QPConfig{IRD: 4, ORD: 4, BindWindows: true}, physical, verbs.InvalidSTag},
		{"no physical memory", able, nil, verbs.InvalidSTag},
	} {
		for _, op := range []verbs.Op{verbs.OpSend, verbs.OpWrite, verbs.OpRecv} {
			bubbleOf(t, func(t *testing.T) {
				s := &table{a: newSideOf(t, verbs.Config{Physical: tt.physical}, tt.cfg), b: newSide(t, able)}
				s.x, s.y = nettest.Pipe()
				join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
				settle()
				copy(physical, make([]byte, 100))
				copy(physical[100:], "physical memory")
				if op == verbs.OpRecv {
					check(t, s.a.qp.PostRecv(verbs.RecvWR{ID: 1, SGL: zero(10, 20)}))
					s.a.post(s.a.write(0, s.b, 0, 0)) // so that the responder may send
					copy(s.b.buf, "received")
					s.b.post(s.b.send(2, 0, 8))
					wantDone(t, s.a.recvCQ, done{1, tt.want})
					if got := string(physical[10:18]) == "received"; got != (tt.want == verbs.Success) {
						t.Errorf("%s: received %v", tt.name, got)
					}
					return
				}
				s.b.receives(3, 1, 100)
				s.a.post(verbs.SendWR{ID: 1, Op: op, Flags: verbs.Signaled, SGL: zero(100, 15), Remote: s.b.mr.Remote(0)})
				wantDone(t, s.a.sendCQ, done{1, tt.want})
				settle()
				if got := string(s.b.buf[:15]) == "physical memory"; got != (tt.want == verbs.Success) {
					t.Errorf("%s: %v moved %v", tt.name, op, got)
				}
			})
		}
	}
	for _, op := range []verbs.Op{verbs.OpRead, verbs.OpReadInvalidate} { // never a sink
		bubbleOf(t, func(t *testing.T) {
			cfg := able
			cfg.ReadSinkLocalWrite = true
			s := &table{a: newSideOf(t, verbs.Config{Physical: physical}, cfg), b: newSide(t, able)}
			s.x, s.y = nettest.Pipe()
			join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
			settle()
			wantLocalFailure(t, s, verbs.SendWR{Op: op, SGL: zero(0, 8), Remote: s.b.mr.Remote(0)}, verbs.InvalidSTag)
		})
	}
	bubbleOf(t, func(t *testing.T) { // bounded by the memory there is
		s := &table{a: newSideOf(t, verbs.Config{Physical: physical}, able), b: newSide(t, able)}
		s.x, s.y = nettest.Pipe()
		join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
		settle()
		wantLocalFailure(t, s, verbs.SendWR{Op: verbs.OpSend, SGL: zero(193, 8)}, verbs.BaseBounds)
	})
}
