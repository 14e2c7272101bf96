package verbs_test

import (
	"strings"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// Each limit is enforced, and named by the error.
//
// Claims: R-8.1.2-5 R-8.1.1-12
// Claims: V-8.1.3.2-5 V-8.3.1-1 S-6.4.3.2-1 S-7.2-1
// Claims: V-5.3.1-1 V-5.3.1-3 V-9.2.3.1-6 V-9.2.5.1-8 V-6.1.1-1 V-6.5-3
// Claims: V-5.1.3-2 V-9.2.1.2-30 V-10.4.2-7
// Claims: V-9.2.1.2-4 V-9.2.1.2-5 V-9.2.1.2-7 V-9.2.1.2-8 V-9.2.1.2-9 V-9.2.1.2-10 V-9.2.1.2-12 V-9.2.1.2-13 V-9.2.1.2-14 V-9.2.1.2-17 V-9.2.1.2-18
// Claims: V-9.2.1.2-21 V-5.1.1-1
func TestLimitsAreEnforcedAndNamed(t *testing.T) {
	r := must(verbs.Open(verbs.Config{Limits: verbs.Limits{
		PDs: 1, CQs: 1, CQEntries: 10, QPs: 1, WRs: 8, SGEs: 5, IRD: 5, ORD: 6, Regions: 2, RegionsOctets: 100,
		Windows: 1, ListEntries: 3, SRQs: 1, SRQWRs: 2,
	}}))(t)
	pd := must(r.AllocPD())(t)
	_, err := r.AllocPD()
	wantLimit(t, err, verbs.ErrResources, "Limits.PDs")
	_, err = r.CreateCQ(verbs.CQConfig{Entries: 11})
	wantLimit(t, err, verbs.ErrCQEntries, "Limits.CQEntries")
	_, err = r.CreateCQ(verbs.CQConfig{})
	wantError(t, err, verbs.ErrModifier)
	_, err = r.CreateCQ(verbs.CQConfig{Entries: -1})
	wantError(t, err, verbs.ErrModifier)
	cq := must(r.CreateCQ(verbs.CQConfig{Entries: 10}))(t)
	_, err = r.CreateCQ(verbs.CQConfig{Entries: 1})
	wantLimit(t, err, verbs.ErrResources, "Limits.CQs")

	create := func(change func(*verbs.QPConfig)) func() error {
		return func() error {
			cfg := verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 8, RecvDepth: 8, SendSGEs: 3, RecvSGEs: 5, IRD: 5, ORD: 6}
			change(&cfg)
			_, err := pd.CreateQP(cfg)
			return err
		}
	}
	other := newSide(t, verbs.QPConfig{})
	for _, tt := range []struct {
		name   string
		result error
		limit  string
		change func(*verbs.QPConfig)
	}{
		{"SQ depth", verbs.ErrWRMax, "Limits.WRs", func(c *verbs.QPConfig) { c.SendDepth = 9 }},
		{"RQ depth", verbs.ErrWRMax, "Limits.WRs", func(c *verbs.QPConfig) { c.RecvDepth = 9 }},
		{"SQ elements", verbs.ErrSGEMax, "Limits.SGEs", func(c *verbs.QPConfig) { c.SendSGEs = 6 }},
		{"elements of Writes", verbs.ErrSGEMax, "Limits.SGEs", func(c *verbs.QPConfig) { c.WriteSGEs = 6 }},
		{"RQ elements", verbs.ErrSGEMax, "Limits.SGEs", func(c *verbs.QPConfig) { c.RecvSGEs = 6 }},
		{"IRD", verbs.ErrIRD, "Limits.IRD", func(c *verbs.QPConfig) { c.IRD = 6 }},
		{"ORD", verbs.ErrORD, "Limits.ORD", func(c *verbs.QPConfig) { c.ORD = 7 }},
		{"negative", verbs.ErrModifier, "", func(c *verbs.QPConfig) { c.SendDepth = -1 }},
		{"no CQ", verbs.ErrCQ, "", func(c *verbs.QPConfig) { c.RecvCQ = nil }},
		{"another RNIC's CQ", verbs.ErrCQ, "", func(c *verbs.QPConfig) { c.SendCQ = other.sendCQ }},
	} {
		err := create(tt.change)()
		wantLimit(t, err, tt.result, tt.limit)
		if u := r.Usage(); u != (verbs.Usage{PDs: 1, CQs: 1, CQEntries: 10}) {
			t.Fatalf("%s: the refusal left %+v", tt.name, u)
		}
	}
	check(t, create(func(*verbs.QPConfig) {})())
	wantLimit(t, create(func(*verbs.QPConfig) {})(), verbs.ErrResources, "Limits.QPs")

	_, err = pd.Register(make([]byte, 101), verbs.LocalRead)
	wantLimit(t, err, verbs.ErrResources, "Limits.RegionsOctets")
	mr := must(pd.Register(make([]byte, 100), verbs.LocalRead))(t)
	_, err = pd.Register(make([]byte, 1), verbs.LocalRead)
	wantLimit(t, err, verbs.ErrResources, "Limits.RegionsOctets")
	_, err = pd.AllocMR(4, false)
	wantLimit(t, err, verbs.ErrResources, "Limits.ListEntries")
	_, err = pd.RegisterMR(verbs.MRConfig{List: &verbs.BufferList{Buffers: make([][]byte, 4)}, Access: verbs.LocalRead})
	wantLimit(t, err, verbs.ErrResources, "Limits.ListEntries")
	must(pd.AllocMR(3, false))(t)
	_, err = pd.AllocMR(1, false)
	wantLimit(t, err, verbs.ErrResources, "Limits.Regions")
	must(pd.AllocMW())(t)
	_, err = pd.AllocMW()
	wantLimit(t, err, verbs.ErrResources, "Limits.Windows")
	_, err = pd.CreateSRQ(verbs.SRQConfig{WRs: 3})
	wantLimit(t, err, verbs.ErrWRMax, "Limits.SRQWRs")
	must(pd.CreateSRQ(verbs.SRQConfig{WRs: 2}))(t)
	_, err = pd.CreateSRQ(verbs.SRQConfig{WRs: 2})
	wantLimit(t, err, verbs.ErrResources, "Limits.SRQs")
	if u, want := r.Usage(), (verbs.Usage{PDs: 1, CQs: 1, CQEntries: 10, QPs: 1, IRD: 5, ORD: 6, SRQs: 1, SRQWRs: 2, Regions: 2, Windows: 1, RegionsOctets: 100}); u != want {
		t.Errorf("usage %+v, expected %+v", u, want)
	}
	check(t, mr.Deallocate())
	check(t, r.Close())
}

func wantLimit(t *testing.T, err, result error, limit string) {
	t.Helper()
	wantError(t, err, result)
	if err != nil && !strings.Contains(err.Error(), limit) {
		t.Errorf("%q does not name %s", err, limit)
	}
}

// Claims: V-9.2.6.2-9
func TestRegistrationHasAResultForEachMistake(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	buf := make([]byte, 16)
	for _, tt := range []struct {
		name string
		cfg  verbs.MRConfig
		want error
	}{
		{"no rights", verbs.MRConfig{Buf: buf}, verbs.ErrAccess},
		{"remote without local", verbs.MRConfig{Buf: buf, Access: verbs.LocalRead | verbs.RemoteWrite}, verbs.ErrAccess},
		{"no octets", verbs.MRConfig{Access: verbs.LocalRead}, verbs.ErrLength},
		{"beyond the last offset", verbs.MRConfig{Buf: buf, Access: verbs.LocalRead, VA: 1<<64 - 15}, verbs.ErrVA},
	} {
		before := s.rnic.Usage()
		_, err := s.pd.RegisterMR(tt.cfg)
		wantError(t, err, tt.want)
		if s.rnic.Usage() != before {
			t.Errorf("%s: something was kept", tt.name)
		}
	}
	mr := must(s.pd.RegisterMR(verbs.MRConfig{Buf: buf, Access: allRights, VA: 1<<64 - 16, Key: 0xA5}))(t)
	if mr.Base() != 1<<64-16 || mr.Len() != 16 || uint8(mr.STag()) != 0xA5 || !mr.Valid() || mr.PD() != s.pd {
		t.Errorf("base %#x, length %d, STag %v, valid %v", mr.Base(), mr.Len(), mr.STag(), mr.Valid())
	}
	if e, r := mr.SGE(4, 3), mr.Remote(5); e != (verbs.SGE{STag: mr.STag(), TO: 1<<64 - 12, Length: 3}) || r != (verbs.Remote{STag: mr.STag(), TO: 1<<64 - 11}) {
		t.Errorf("element %+v, remote %+v", e, r)
	}
	if zero := must(s.pd.RegisterMR(verbs.MRConfig{Buf: buf, Access: allRights, VA: 77, ZeroBased: true}))(t); zero.Base() != 0 {
		t.Errorf("a zero-based region begins at %d", zero.Base())
	}
	check(t, mr.Deallocate())
	wantError(t, mr.Deallocate(), verbs.ErrSTag)
	if mr.Valid() {
		t.Error("valid after deallocation")
	}
}

// Verbs §5.2: nothing goes while something else belongs to it.
//
// Claims: V-5.3.4-1 V-6.1.1-7 V-6.1.1-10 V-9.2.2.2-1 V-9.2.3.4-1
func TestObjectsInUseAreNotTakenAway(t *testing.T) {
	r := must(verbs.Open(verbs.Config{}))(t)
	pd := must(r.AllocPD())(t)
	cq := must(r.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
	mr := must(pd.Register(make([]byte, 1), verbs.LocalRead))(t)
	qp := must(pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}))(t)
	if qp.RNIC() != r || qp.PD() != pd || qp.Num() == 0 || qp.Config().SendDepth != 16 || qp.State() != verbs.Idle || qp.Err() != nil {
		t.Errorf("the queue pair is not what was asked for: %+v", qp.Config())
	}
	wantError(t, pd.Dealloc(), verbs.ErrPDInUse)
	wantError(t, cq.Destroy(), verbs.ErrCQInUse)
	check(t, qp.Destroy())
	check(t, cq.Destroy())
	wantError(t, pd.Dealloc(), verbs.ErrPDInUse)
	check(t, mr.Deallocate())
	check(t, pd.Dealloc())
	wantError(t, pd.Dealloc(), verbs.ErrPD)
	wantError(t, cq.Destroy(), verbs.ErrCQ)
	_, err := pd.Register(make([]byte, 1), verbs.LocalRead)
	wantError(t, err, verbs.ErrPD)
	_, err = pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	wantError(t, err, verbs.ErrPD)
	other := must(r.AllocPD())(t)
	_, err = other.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq})
	wantError(t, err, verbs.ErrCQ)
	if u := r.Usage(); u != (verbs.Usage{PDs: 1}) {
		t.Errorf("usage %+v, expected one PD", u)
	}
}

// Verbs §9.2.1.3: everything that belonged to the RNIC is gone when Close
// returns, whatever it was doing.
//
// Claims: V-5.1.4-1 V-9.2.1.3-1 V-9.2.1.3-4
// Claims: V-9.2.1.3-2
func TestClosingTheRNICFreesEverything(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := linked(t, w, reads, reads)
		idle := a.newQP(verbs.QPConfig{})
		check(t, idle.PostSend(verbs.SendWR{Op: verbs.OpSend}))
		waited := make(chan error, 1)
		empty := must(a.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		go func() { waited <- empty.Wait(t.Context()) }()
		a.receives(1, 3, 10)
		check(t, a.rnic.Close())
		wantError(t, nettest.Await(t, waited), verbs.ErrRNIC)
		if u := a.rnic.Usage(); u != (verbs.Usage{}) {
			t.Errorf("left behind: %+v", u)
		}
		wantError(t, a.rnic.Close(), verbs.ErrRNIC)
		_, err := a.rnic.AllocPD()
		wantError(t, err, verbs.ErrRNIC)
		_, err = a.rnic.CreateCQ(verbs.CQConfig{Entries: 1})
		wantError(t, err, verbs.ErrRNIC)
		_, err = a.pd.CreateQP(verbs.QPConfig{SendCQ: a.sendCQ, RecvCQ: a.recvCQ})
		wantError(t, err, verbs.ErrRNIC)
		_, err = a.pd.Register(a.buf, allRights)
		wantError(t, err, verbs.ErrRNIC)
		wantError(t, a.pd.Dealloc(), verbs.ErrRNIC)
		wantError(t, a.sendCQ.Destroy(), verbs.ErrRNIC)
		wantError(t, a.qp.Destroy(), verbs.ErrRNIC)
		wantError(t, a.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}), verbs.ErrRNIC)
		wantError(t, a.qp.PostRecv(verbs.RecvWR{}), verbs.ErrRNIC)
		if _, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil {
			t.Errorf("the peer gets no Terminate message: %v", err)
		}

		// The other RNIC goes on.
		c := newSide(t, reads)
		qp := b.newQP(reads)
		w.connect(t, qp, c.qp, cm.Params{})
		check(t, qp.PostSend(b.write(1, c, 0, 10)))
		wantDone(t, b.sendCQ, done{1, verbs.Success})
	})
}
