package verbs_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// A shared receive queue has what Create S-RQ was asked for, and Query returns it.
// Several may share a domain. The limit is armed if there is one.
//
// Claims: V-6.3-4 V-6.3-6 V-9.2.4-1 V-9.2.4.1-5
// Claims: V-9.2.1.2-26 V-9.2.4.1-1 V-9.2.4.1-2 V-9.2.4.2-1
func TestASharedReceiveQueueIsAsItWasCreated(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	other := must(s.rnic.AllocPD())(t)
	for _, tt := range []struct {
		pd   *verbs.PD
		cfg  verbs.SRQConfig
		want verbs.SRQAttributes
	}{
		{s.pd, verbs.SRQConfig{WRs: 10}, verbs.SRQAttributes{WRs: 10, SGEs: 4}},
		{s.pd, verbs.SRQConfig{WRs: 1, SGEs: 9, Limit: 1}, verbs.SRQAttributes{WRs: 1, SGEs: 9, Limit: 1, Armed: true}},
		{other, verbs.SRQConfig{WRs: 7, SGEs: 1, Limit: 2}, verbs.SRQAttributes{WRs: 7, SGEs: 1, Limit: 2, Armed: true}},
	} {
		srq := must(tt.pd.CreateSRQ(tt.cfg))(t)
		tt.want.PD, tt.want.Free = tt.pd, tt.want.WRs
		if got := must(srq.Query())(t); got != tt.want || srq.PD() != tt.pd {
			t.Errorf("%+v became %+v, expected %+v", tt.cfg, got, tt.want)
		}
	}
	if u := s.rnic.Usage(); u.SRQs != 3 || u.SRQWRs != 18 {
		t.Errorf("%d shared queues of %d receives are in use, expected 3 of 18", u.SRQs, u.SRQWRs)
	}
}

// Each of the verbs has each of its results, and changes nothing then
// (Verbs §9.2.4, §9.5.1.4).
//
// Claims: V-9.2.4-1 V-6.3.1-1 V-6.3.8-4 V-9.2.4.1-4 V-6.3.2-3 V-9.2.1.2-6 V-9.2.1.2-28
// Claims: V-9.2.4.3-1 V-9.2.4.3-2 V-9.2.4.4-1 V-9.5.1.4-1
func TestVerbsOfSharedReceiveQueuesFailAsSpecified(t *testing.T) {
	r := must(verbs.Open(verbs.Config{Limits: verbs.Limits{SRQs: 2, SRQWRs: 100, TotalSRQWRs: 120, SGEs: 5}}))(t)
	t.Cleanup(func() { _ = r.Close() }) // the test has closed it
	pd := must(r.AllocPD())(t)
	cq := must(r.CreateCQ(verbs.CQConfig{Entries: 10}))(t)
	gone := must(r.AllocPD())(t)
	check(t, gone.Dealloc())
	for _, tt := range []struct {
		name string
		pd   *verbs.PD
		cfg  verbs.SRQConfig
		want error
		says string
	}{
		{"no work requests", pd, verbs.SRQConfig{}, verbs.ErrModifier, ""},
		{"fewer than none", pd, verbs.SRQConfig{WRs: -1}, verbs.ErrModifier, ""},
		{"too many", pd, verbs.SRQConfig{WRs: 101}, verbs.ErrWRMax, "Limits.SRQWRs"},
		{"too many elements", pd, verbs.SRQConfig{WRs: 1, SGEs: 6}, verbs.ErrSGEMax, "Limits.SGEs"},
		{"fewer than none", pd, verbs.SRQConfig{WRs: 1, SGEs: -1}, verbs.ErrModifier, ""},
		{"a limit beyond its work requests", pd, verbs.SRQConfig{WRs: 10, Limit: 11}, verbs.ErrSRQLimit, ""},
		{"a limit below 0", pd, verbs.SRQConfig{WRs: 10, Limit: -1}, verbs.ErrSRQLimit, ""},
		{"a domain that is gone", gone, verbs.SRQConfig{WRs: 10}, verbs.ErrPD, ""},
	} {
		_, err := tt.pd.CreateSRQ(tt.cfg)
		wantError(t, err, tt.want)
		if err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v does not say %s", tt.name, err, tt.says)
		}
	}
	if u := r.Usage(); u.SRQs != 0 || u.SRQWRs != 0 {
		t.Errorf("%+v is in use after failures", u)
	}
	srq := must(pd.CreateSRQ(verbs.SRQConfig{WRs: 100, SGEs: 5, Limit: 10}))(t)
	_, err := pd.CreateSRQ(verbs.SRQConfig{WRs: 21})
	wantError(t, err, verbs.ErrResources)
	other := must(pd.CreateSRQ(verbs.SRQConfig{WRs: 10}))(t)
	_, err = pd.CreateSRQ(verbs.SRQConfig{WRs: 1})
	wantError(t, err, verbs.ErrResources)
	wantError(t, pd.Dealloc(), verbs.ErrPDInUse)

	for range 6 {
		check(t, other.PostRecv(verbs.RecvWR{}))
	}
	for _, tt := range []struct {
		name string
		srq  *verbs.SRQ
		m    verbs.SRQModify
		want error
	}{
		{"no work requests", other, verbs.SRQModify{WRs: new(0)}, verbs.ErrModifier},
		{"too many", other, verbs.SRQModify{WRs: new(101)}, verbs.ErrWRMax},
		{"more than are left of all", other, verbs.SRQModify{WRs: new(21)}, verbs.ErrResources},
		{"fewer than are outstanding", other, verbs.SRQModify{WRs: new(5)}, verbs.ErrShrink},
		{"a limit beyond its work requests", other, verbs.SRQModify{Limit: new(11)}, verbs.ErrSRQLimit},
		{"a limit beyond those to be", other, verbs.SRQModify{WRs: new(7), Limit: new(8)}, verbs.ErrSRQLimit},
		{"a limit below 0", other, verbs.SRQModify{Limit: new(-1)}, verbs.ErrSRQLimit},
		{"nothing to arm", other, verbs.SRQModify{Arm: true}, verbs.ErrModifier},
		{"fewer than the limit that is armed", srq, verbs.SRQModify{WRs: new(9)}, verbs.ErrModifier},
	} {
		before := must(tt.srq.Query())(t)
		_, err := tt.srq.Modify(tt.m)
		wantError(t, err, tt.want)
		if after := must(tt.srq.Query())(t); after != before {
			t.Errorf("%s: %+v became %+v", tt.name, before, after)
		}
	}
	if got := must(other.Modify(verbs.SRQModify{WRs: new(20)}))(t).WRs; got != 20 {
		t.Errorf("%d work requests after all that, expected 20", got)
	}

	qp := must(pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq}))(t)
	wantError(t, srq.Destroy(), verbs.ErrSRQInUse)
	check(t, qp.Destroy())
	check(t, srq.Destroy())
	for name, verb := range srqVerbs(srq, cq, pd) {
		if err := verb(); !errors.Is(err, verbs.ErrSRQ) {
			t.Errorf("%s of a queue that was destroyed: %v", name, err)
		}
	}
	wantError(t, srq.Destroy(), verbs.ErrSRQ)
	check(t, r.Close())
	for name, verb := range srqVerbs(other, cq, pd) {
		if err := verb(); !errors.Is(err, verbs.ErrRNIC) {
			t.Errorf("%s of a closed RNIC: %v", name, err)
		}
	}
	_, err = pd.CreateSRQ(verbs.SRQConfig{WRs: 1})
	wantError(t, err, verbs.ErrRNIC)
	wantError(t, other.Destroy(), verbs.ErrRNIC)
}

// srqVerbs are the verbs that take a shared receive queue, but Destroy.
func srqVerbs(srq *verbs.SRQ, cq *verbs.CQ, pd *verbs.PD) map[string]func() error {
	return map[string]func() error{
		"query":  func() error { _, err := srq.Query(); return err },
		"modify": func() error { _, err := srq.Modify(verbs.SRQModify{}); return err },
		"post":   func() error { return srq.PostRecv(verbs.RecvWR{}) },
		"fail":   func() error { return srq.Fail() },
		"create QP": func() error {
			_, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq})
			return err
		},
	}
}

// A list is posted up to the first that is refused, and the rest is as if it had
// never been (Verbs §8.2.1); what is posted is full when no receive is spare.
//
// Claims: V-9.2.4-1 V-6.3.5-2 V-9.3.1.2-1 V-8.2.1-2
// Claims: V-9.3.1.2-2 V-9.3.1.2-3
func TestReceivesAreSharedUpToTheFirstThatIsRefused(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	srq := must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 3, SGEs: 1}))(t)
	sge := s.mr.SGE(0, 8)
	n, err := srq.PostRecvs([]verbs.RecvWR{{ID: 1}, {ID: 2, SGL: []verbs.SGE{sge, sge}}, {ID: 3}})
	wantError(t, err, verbs.ErrSGLLength)
	if n != 1 || must(srq.Query())(t).Posted != 1 {
		t.Errorf("%d were posted, expected 1", n)
	}
	n, err = srq.PostRecvs([]verbs.RecvWR{{ID: 4}, {ID: 5}, {ID: 6}})
	wantError(t, err, verbs.ErrFull)
	if n != 2 || must(srq.Query())(t).Posted != 3 {
		t.Errorf("%d were posted, expected 2", n)
	}
	wantError(t, srq.PostRecv(verbs.RecvWR{}), verbs.ErrFull)
}

// A queue pair is tied to a shared queue for good, when it is created: it has no
// receives of its own, and what is asked for them is ignored, nonsense included.
//
// Claims: V-6.3.4-1 V-6.3.5-1 V-9.2.5.1-5 V-9.2.5.1-11 V-9.3.1.2-5
// Claims: V-9.5.1.7-1
func TestAQueuePairWithASharedQueueHasNoReceivesOfItsOwn(t *testing.T) {
	s := newSide(t, verbs.QPConfig{})
	srq := must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 3}))(t)
	for _, depth := range []int{-1, 0, 1 << 30} {
		qp := s.newQP(verbs.QPConfig{SRQ: srq, RecvDepth: depth, RecvSGEs: depth})
		if cfg := qp.Config(); cfg.RecvDepth != 0 || cfg.RecvSGEs != 0 || cfg.SRQ != srq {
			t.Errorf("it has %d receives of %d elements", cfg.RecvDepth, cfg.RecvSGEs)
		}
		wantError(t, qp.PostRecv(verbs.RecvWR{}), verbs.ErrRQOfSRQ)
		n, err := qp.PostRecvs([]verbs.RecvWR{{}, {}})
		wantError(t, err, verbs.ErrRQOfSRQ)
		if got := must(srq.Query())(t); n != 0 || got.Posted != 0 || got.QPs != 1 {
			t.Errorf("%d were posted; the shared queue is %+v", n, got)
		}
		qp.Abort()
		wantError(t, qp.PostRecv(verbs.RecvWR{}), verbs.ErrRQOfSRQ)
		check(t, qp.Destroy())
		wantError(t, qp.PostRecv(verbs.RecvWR{}), verbs.ErrQP)
	}
	wantNone(t, s.recvCQ)
}

// Create QP takes shared queues of its RNIC alone, and QP RQ Limits that make
// sense.
func TestAQueuePairIsNotCreatedOnAWrongSharedQueue(t *testing.T) {
	s, other := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	srq := must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 3}))(t)
	foreign := must(other.pd.CreateSRQ(verbs.SRQConfig{WRs: 3}))(t)
	before := s.rnic.Usage()
	for _, tt := range []struct {
		cfg  verbs.QPConfig
		want error
	}{
		{verbs.QPConfig{SRQ: foreign}, verbs.ErrSRQ},
		{verbs.QPConfig{SRQ: srq, RQLimit: 4}, verbs.ErrRQLimit},
		{verbs.QPConfig{SRQ: srq, RQLimit: -1}, verbs.ErrRQLimit},
		{verbs.QPConfig{RQLimit: 1}, verbs.ErrRQLimit},
	} {
		tt.cfg.SendCQ, tt.cfg.RecvCQ = s.sendCQ, s.recvCQ
		_, err := s.pd.CreateQP(tt.cfg)
		wantError(t, err, tt.want)
	}
	if after := s.rnic.Usage(); after != before {
		t.Errorf("usage %+v became %+v", before, after)
	}
	check(t, srq.Destroy()) // none of them uses it
}

// A shared queue goes when no queue pair uses it, with receives posted or not;
// those are not referred to any more, and it is no longer in the way of its
// domain.
//
// Claims: V-6.3.3-1 V-6.3.3-2
func TestASharedQueueIsDestroyedWithItsReceives(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 4}, 2, verbs.QPConfig{})
		s.receives(10, 3, 8)
		s.ends[0].send(8)
		quiesce()
		wantError(t, s.srq.Destroy(), verbs.ErrSRQInUse)
		check(t, s.ends[0].qp.Destroy())
		wantError(t, s.srq.Destroy(), verbs.ErrSRQInUse)
		check(t, s.ends[1].qp.Destroy())
		check(t, s.srq.Destroy())
		wantDone(t, s.ends[0].cq, done{10, verbs.Success}) // it is there still
		for _, e := range s.ends {
			wantNone(t, e.cq)
		}
		check(t, s.qp.Destroy())
		check(t, s.mr.Deallocate())
		check(t, s.pd.Dealloc())
		if u := s.rnic.Usage(); u.SRQs != 0 || u.SRQWRs != 0 {
			t.Errorf("%+v is in use", u)
		}
	})
}

// Whatever the LLP, messages of several queue pairs take the receives in the order of
// their arrival, and one that finds none ends its own stream.
func TestASharedQueueServesStreamsOfAnyLLP(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b := newSide(t, reads), newSide(t, reads)
		srq := must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 8}))(t)
		var senders, takers []*verbs.QP
		for range 2 {
			s, r := a.newQP(reads), b.newQP(verbs.QPConfig{SRQ: srq, IRD: 4, ORD: 4})
			w.connect(t, s, r, cm.Params{})
			senders, takers = append(senders, s), append(takers, r)
		}
		for id := range uint64(4) {
			check(t, srq.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{b.mr.SGE(int(id)*8, 8)}}))
		}
		for id := range uint64(4) {
			check(t, senders[id%2].PostSend(a.send(id, 0, 8)))
			wantDone(t, a.sendCQ, done{id, verbs.Success})
			if wc := wantDone(t, b.recvCQ, done{id, verbs.Success})[0]; wc.QP != takers[id%2] {
				t.Errorf("receive %d is of queue pair %d", id, wc.QPNum)
			}
		}
		check(t, senders[0].PostSend(a.send(5, 0, 8)))
		b.wantEvents(verbs.EventRQMSNRange)
		reach(t, takers[0], verbs.Error)
		check(t, srq.PostRecv(verbs.RecvWR{ID: 6, SGL: []verbs.SGE{b.mr.SGE(0, 8)}}))
		check(t, senders[1].PostSend(a.send(7, 0, 8)))
		wantDone(t, b.recvCQ, done{6, verbs.Success})
	})
}
