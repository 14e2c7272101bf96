package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// IRD and ORD belong to each queue pair, or come out of a pool of the RNIC: Query returns
// which. A request for more than a pool has fails (Verbs §6.5, §9.2.1.2).
//
// Claims: V-9.2.1.2-15 V-9.2.1.2-16 V-9.2.5.1-12 V-9.2.5.1-13 V-9.2.5.1-14 V-6.5-6 S-7.2-2
// Claims: V-6.5-2
func TestReadResourcesComeFromThePoolThatThereIs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		limits verbs.Limits
		cfg    verbs.QPConfig // of each queue pair
		room   int            // for so many of them
		limit  string
	}{
		{"no pool", verbs.Limits{QPs: 50, IRD: 9, ORD: 9}, verbs.QPConfig{IRD: 9, ORD: 9}, 50, "Limits.QPs"},
		{"a pool of IRD", verbs.Limits{TotalIRD: 20}, verbs.QPConfig{IRD: 7, ORD: 9}, 2, "Limits.TotalIRD"},
		{"a pool of ORD", verbs.Limits{TotalORD: 20}, verbs.QPConfig{IRD: 9, ORD: 7}, 2, "Limits.TotalORD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := must(verbs.Open(verbs.Config{Limits: tt.limits}))(t)
			t.Cleanup(func() { check(t, r.Close()) })
			if l := must(r.Query())(t).Limits; l.TotalIRD != tt.limits.TotalIRD || l.TotalORD != tt.limits.TotalORD {
				t.Errorf("Query returns pools of %d and %d", l.TotalIRD, l.TotalORD)
			}
			pd := must(r.AllocPD())(t)
			cq := must(r.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
			tt.cfg.SendCQ, tt.cfg.RecvCQ = cq, cq
			var qps []*verbs.QP
			for range tt.room {
				qp := must(pd.CreateQP(tt.cfg))(t)
				if q := must(qp.Query())(t); q.IRD != tt.cfg.IRD || q.ORD != tt.cfg.ORD {
					t.Errorf("a queue pair has %d and %d", q.IRD, q.ORD)
				}
				qps = append(qps, qp)
			}
			before := r.Usage()
			_, err := pd.CreateQP(tt.cfg)
			wantLimit(t, err, verbs.ErrResources, tt.limit)
			if r.Usage() != before {
				t.Errorf("the refusal left %+v of %+v", r.Usage(), before)
			}
			check(t, qps[0].Destroy()) // which gives back
			must(pd.CreateQP(tt.cfg))(t)
		})
	}
}

// Every queue pair that there can be can have an IRD and an ORD of 1, from a pool
// too (Verbs §6.5).
//
// Claims: V-6.5-10
func TestEachQueuePairCanHaveOneRead(t *testing.T) {
	for _, limits := range []verbs.Limits{{QPs: 40}, {QPs: 40, TotalIRD: 13}, {QPs: 40, TotalORD: 13}, {QPs: 5, TotalIRD: 13, TotalORD: 7}} {
		r := must(verbs.Open(verbs.Config{Limits: limits}))(t)
		pd := must(r.AllocPD())(t)
		cq := must(r.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		n := must(r.Query())(t).Limits.QPs
		if n == 0 || n > limits.QPs {
			t.Errorf("%d queue pairs, of %+v", n, limits)
		}
		for range n {
			must(pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, IRD: 1, ORD: 1}))(t)
		}
		check(t, r.Close())
	}
}
