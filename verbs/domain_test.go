package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// Protection domains have numbers of their own, and any of them is that of any
// queue pair, shared receive queue, region and window of the RNIC, of as many as
// there are.
//
// Claims: V-5.2-1 V-5.2-2 V-5.2.1-1 V-9.2.2.1-1
func TestAnyDomainIsThatOfAnyObjects(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	ids := map[uint64]bool{s.pd.ID(): true}
	var pds []*verbs.PD
	for range 20 {
		pd := must(s.rnic.AllocPD())(t)
		if pd.ID() == 0 || ids[pd.ID()] || pd.RNIC() != s.rnic {
			t.Fatalf("PD ID %d is in use", pd.ID())
		}
		ids[pd.ID()] = true
		pds = append(pds, pd)
	}
	for _, pd := range []*verbs.PD{pds[3], pds[0], pds[3], s.pd, pds[19]} {
		qp := must(pd.CreateQP(verbs.QPConfig{SendCQ: s.sendCQ, RecvCQ: s.recvCQ}))(t)
		srq := must(pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(t)
		plain := must(pd.Register(make([]byte, 8), verbs.LocalRead))(t)
		empty := must(pd.AllocMR(1, false))(t)
		shared := must(plain.RegisterShared(pd, verbs.SharedConfig{ExistingKey: plain.STag().Key(), Access: verbs.LocalRead}))(t)
		window := must(pd.AllocMW())(t)
		for name, got := range map[string]*verbs.PD{
			"queue pair": qp.PD(), "shared receive queue": must(srq.Query())(t).PD,
			"region": must(plain.Query())(t).PD, "STag": must(empty.Query())(t).PD,
			"shared region": must(shared.Query())(t).PD, "window": must(window.Query())(t).PD,
		} {
			if got != pd {
				t.Errorf("the %s is of another protection domain", name)
			}
		}
	}
	// An S-RQ and its queue pair, and a region and what shares its memory, may
	// be of two.
	srq := must(pds[1].CreateSRQ(verbs.SRQConfig{WRs: 1}))(t)
	if qp := s.newQP(verbs.QPConfig{SRQ: srq}); qp.PD() != s.pd || srq.PD() != pds[1] {
		t.Error("a shared receive queue is of the domain of its queue pair")
	}
	shared := must(s.mr.RegisterShared(pds[1], verbs.SharedConfig{ExistingKey: s.mr.STag().Key(), Access: verbs.LocalRead}))(t)
	if must(shared.Query())(t).PD != pds[1] || must(s.mr.Query())(t).PD != s.pd {
		t.Error("a region that shares its memory is of the domain of the other")
	}
}

// A protection domain is in use by each kind of object, in each of its states,
// and stays what it is.
//
// Claims: V-5.2.2-1 V-9.2.2.2-3 V-9.2.2.2-4
func TestADomainInUseIsNotDeallocated(t *testing.T) {
	for _, tt := range []struct {
		name string
		// use makes an object of the domain and returns what ends it.
		use func(t *testing.T, s *side, pd *verbs.PD) (end func() error)
	}{
		{"a queue pair", func(t *testing.T, s *side, pd *verbs.PD) func() error {
			return must(pd.CreateQP(verbs.QPConfig{SendCQ: s.sendCQ, RecvCQ: s.recvCQ}))(t).Destroy
		}},
		{"a shared receive queue", func(t *testing.T, _ *side, pd *verbs.PD) func() error {
			return must(pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(t).Destroy
		}},
		{"a region", func(t *testing.T, _ *side, pd *verbs.PD) func() error {
			return must(pd.Register(make([]byte, 8), verbs.LocalRead))(t).Deallocate
		}},
		{"a region without memory", func(t *testing.T, _ *side, pd *verbs.PD) func() error {
			return must(pd.AllocMR(1, true))(t).Deallocate
		}},
		{"a region that shares its memory with one of another domain", func(t *testing.T, s *side, pd *verbs.PD) func() error {
			return must(s.mr.RegisterShared(pd, verbs.SharedConfig{ExistingKey: s.mr.STag().Key(), Access: verbs.LocalRead}))(t).Deallocate
		}},
		{"a region that came from another domain", func(t *testing.T, s *side, pd *verbs.PD) func() error {
			mr := must(s.pd.Register(make([]byte, 8), verbs.LocalRead))(t)
			check(t, mr.Reregister(pd, verbs.MRConfig{Buf: make([]byte, 8), Access: verbs.LocalRead}))
			return mr.Deallocate
		}},
		{"a window", func(t *testing.T, _ *side, pd *verbs.PD) func() error {
			return must(pd.AllocMW())(t).Deallocate
		}},
	} {
		s := newSide(t, verbs.QPConfig{})
		pd := must(s.rnic.AllocPD())(t)
		end := tt.use(t, s, pd)
		wantError(t, pd.Dealloc(), verbs.ErrPDInUse)
		mr := must(pd.Register(make([]byte, 8), verbs.LocalRead))(t) // it is as it was
		check(t, mr.Deallocate())
		check(t, end())
		if err := pd.Dealloc(); err != nil {
			t.Errorf("%s has gone: %v", tt.name, err)
		}
		wantError(t, pd.Dealloc(), verbs.ErrPD)
	}
	// A window is its domain's, whether it is bound to a queue pair or not any more.
	bubble(t, able, verbs.QPConfig{}, func(t *testing.T, s *table) {
		a := s.a
		mr := a.mrOf(verbs.MRConfig{Buf: make([]byte, 100), Access: bindable, VA: 1000})
		mw := a.window()
		a.post(bind(1, mw.Binding(mr, 0, 10, verbs.RemoteRead)))
		quiesce()
		wantDone(t, a.sendCQ, done{1, verbs.Success})
		if u := must(mw.Query())(t); !u.Valid || u.PD != a.pd {
			t.Errorf("the window that is bound: %+v", u)
		}
		wantError(t, a.pd.Dealloc(), verbs.ErrPDInUse)
		a.post(inval(2, mw.STag()))
		quiesce()
		wantDone(t, a.sendCQ, done{2, verbs.Success})
		check(t, mr.Deallocate())
		check(t, a.mr.Deallocate())
		check(t, a.qp.Destroy())
		wantError(t, a.pd.Dealloc(), verbs.ErrPDInUse)
		check(t, mw.Deallocate())
		check(t, a.pd.Dealloc())
	})
}
