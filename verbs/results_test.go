package verbs_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// Each verb has each of its results, but for that of an RNIC that is closed, and
// leaves everything as it was (Verbs §8.3.1, §9.5.1).
//
// Claims: V-8.3.1-1
// Claims: V-6.1.3-1 V-6.1.3-7 V-6.1.3-10 V-6.2.1-4 V-9.2.5.4-2 V-9.3.1.2-5 V-6.3.5-1 V-9.2.4.1-4 V-9.2.5.3-4 V-9.2.5.3-6 V-9.2.5.3-11
// Claims: V-9.2.1.1-4 V-9.2.2.1-2 V-9.2.2.2-2 V-9.2.3.1-4 V-9.2.3.2-2 V-9.2.3.3-3 V-9.2.3.4-2 V-9.2.4.1-3 V-9.2.4.2-1 V-9.2.4.3-3 V-9.2.4.4-1
// Claims: V-9.2.5.1-15 V-9.2.5.2-2 V-9.2.5.3-10 V-9.2.5.4-3 V-9.2.6.1-5 V-9.2.6.2-10 V-9.2.6.3-2 V-9.2.6.3-4 V-9.2.6.4-2 V-9.2.6.5-7 V-9.2.6.6-5
// Claims: V-9.2.6.7-2 V-9.2.6.8-2 V-9.3.1.1-22 V-9.3.1.2-4 V-9.3.2.1-4 V-9.3.2.2-2 V-9.4.1-9 V-9.5.1.1-1 V-9.5.1.2-1 V-9.5.1.3-1 V-9.5.1.4-1
// Claims: V-9.5.1.5-1 V-9.5.1.7-1 V-9.5.1.8-1 V-8.3-1
func TestEveryVerbHasEachOfItsResults(t *testing.T) {
	const many = 1 << 30
	had := map[string]map[error]bool{
		"Modify QP":                           {verbs.ErrFlushing: true}, // TestErrorIsNotLeftBeforeEverythingIsFlushed
		"Reregister Non-Shared Memory Region": {verbs.ErrPD: true},
	}
	for _, verb := range []string{"Register Non-Shared Memory Region", "Reregister Non-Shared Memory Region"} {
		for _, mistake := range registrations(newBench(t)) { // TestRegistrationsHaveEachOfTheirResults
			if had[verb] == nil {
				had[verb] = map[error]bool{}
			}
			had[verb][mistake.result] = true
		}
	}
	other := func(t *testing.T) *side { return newSide(t, reads) }
	for _, tt := range []struct {
		verb   string
		result error
		do     func(t *testing.T, b *bench) error
	}{
		{"Open RNIC", verbs.ErrName, func(t *testing.T, b *bench) error { return fails(verbs.Open(verbs.Config{Name: "no such/name"})) }},
		{"Open RNIC", verbs.ErrRNICInUse, func(t *testing.T, b *bench) error { return fails(verbs.Open(verbs.Config{Name: b.rnic.Name()})) }},
		{"Open RNIC", verbs.ErrBlockList, func(t *testing.T, b *bench) error { return fails(verbs.Open(verbs.Config{Mode: 9})) }},

		{"Deallocate PD", verbs.ErrPD, func(t *testing.T, b *bench) error { return b.gone.Dealloc() }},
		{"Deallocate PD", verbs.ErrPDInUse, func(t *testing.T, b *bench) error { return b.pd.Dealloc() }},

		{"Create CQ", verbs.ErrModifier, func(t *testing.T, b *bench) error { return fails(b.rnic.CreateCQ(verbs.CQConfig{})) }},
		{"Create CQ", verbs.ErrCQEntries, func(t *testing.T, b *bench) error { return fails(b.rnic.CreateCQ(verbs.CQConfig{Entries: many})) }},
		{"Create CQ", verbs.ErrHandler, func(t *testing.T, b *bench) error {
			return fails(b.rnic.CreateCQ(verbs.CQConfig{Entries: 1, Handler: b.handle + 1}))
		}},
		{"Modify CQ", verbs.ErrCQEntries, func(t *testing.T, b *bench) error { return fails(b.cq.Resize(many)) }},
		{"Modify CQ", verbs.ErrModifier, func(t *testing.T, b *bench) error { return fails(b.cq.Resize(0)) }},
		{"Modify CQ", verbs.ErrShrink, func(t *testing.T, b *bench) error { return fails(b.cq.Resize(1)) }},
		{"Destroy CQ", verbs.ErrCQInUse, func(t *testing.T, b *bench) error { return b.cq.Destroy() }},
		{"Poll for Completion", verbs.ErrCQEmpty, func(t *testing.T, b *bench) error { return fails(b.recvCQ.PollOne()) }},
		{"Request Completion Notification", verbs.ErrNotify, func(t *testing.T, b *bench) error { return b.cq.RequestNotify(9) }},
		{"Set Completion Event Handler", verbs.ErrHandler, func(t *testing.T, b *bench) error { return fails(b.rnic.SetCompletionHandler(nil, 0)) }},
		{"Set Completion Event Handler", verbs.ErrHandler, func(t *testing.T, b *bench) error {
			return fails(b.rnic.SetCompletionHandler(func(*verbs.CQ) {}, b.handle+1))
		}},
		{"Set Completion Event Handler", verbs.ErrResources, func(t *testing.T, b *bench) error {
			return fails(b.rnic.SetCompletionHandler(func(*verbs.CQ) {}, 0))
		}},

		{"Create S-RQ", verbs.ErrPD, func(t *testing.T, b *bench) error { return fails(b.gone.CreateSRQ(verbs.SRQConfig{WRs: 1})) }},
		{"Create S-RQ", verbs.ErrWRMax, func(t *testing.T, b *bench) error { return fails(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 17})) }},
		{"Create S-RQ", verbs.ErrSGEMax, func(t *testing.T, b *bench) error { return fails(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 1, SGEs: 9})) }},
		{"Create S-RQ", verbs.ErrSRQLimit, func(t *testing.T, b *bench) error { return fails(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 1, Limit: 2})) }},
		{"Create S-RQ", verbs.ErrModifier, func(t *testing.T, b *bench) error { return fails(b.pd.CreateSRQ(verbs.SRQConfig{})) }},
		{"Modify S-RQ", verbs.ErrWRMax, func(t *testing.T, b *bench) error { return fails(b.srq.Modify(verbs.SRQModify{WRs: new(17)})) }},
		{"Modify S-RQ", verbs.ErrShrink, func(t *testing.T, b *bench) error { return fails(b.srq.Modify(verbs.SRQModify{WRs: new(2)})) }},
		{"Modify S-RQ", verbs.ErrSRQLimit, func(t *testing.T, b *bench) error { return fails(b.srq.Modify(verbs.SRQModify{Limit: new(5)})) }},
		{"Modify S-RQ", verbs.ErrModifier, func(t *testing.T, b *bench) error { return fails(b.srq.Modify(verbs.SRQModify{WRs: new(1)})) }},
		{"Destroy S-RQ", verbs.ErrSRQInUse, func(t *testing.T, b *bench) error { return b.srq.Destroy() }},

		{"Create QP", verbs.ErrCQ, func(t *testing.T, b *bench) error { return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq})) }},
		{"Create QP", verbs.ErrSRQ, func(t *testing.T, b *bench) error {
			srq := must(other(t).pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(t)
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SRQ: srq}))
		}},
		{"Create QP", verbs.ErrORD, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, ORD: 9}))
		}},
		{"Create QP", verbs.ErrIRD, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, IRD: 9}))
		}},
		{"Create QP", verbs.ErrWRMax, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SendDepth: 65}))
		}},
		{"Create QP", verbs.ErrWRMax, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, RecvDepth: 65}))
		}},
		{"Create QP", verbs.ErrSGEMax, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SendSGEs: 9}))
		}},
		{"Create QP", verbs.ErrSGEMax, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, RecvSGEs: 9}))
		}},
		{"Create QP", verbs.ErrSGEMax, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, WriteSGEs: 9}))
		}},
		{"Create QP", verbs.ErrPD, func(t *testing.T, b *bench) error {
			return fails(b.gone.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq}))
		}},
		{"Create QP", verbs.ErrRQLimit, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SRQ: b.srq, RQLimit: -1}))
		}},
		{"Create QP", verbs.ErrModifier, func(t *testing.T, b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SendDepth: -1}))
		}},
		{"Query QP", verbs.ErrQP, func(t *testing.T, b *bench) error { return fails(b.dead.Query()) }},
		{"Modify QP", verbs.ErrQP, func(t *testing.T, b *bench) error { return fails(b.dead.Modify(verbs.Error, verbs.QPModify{})) }},
		{"Modify QP", verbs.ErrState, func(t *testing.T, b *bench) error { return fails(b.plain.Modify(verbs.Closing, verbs.QPModify{})) }},
		{"Modify QP", verbs.ErrAttribute, func(t *testing.T, b *bench) error {
			return fails(b.plain.Modify(verbs.Error, verbs.QPModify{SendDepth: new(8)}))
		}},
		{"Modify QP", verbs.ErrModifier, func(t *testing.T, b *bench) error {
			return fails(b.qp.Modify(verbs.RTS, verbs.QPModify{StreamMessage: []byte("too late")}))
		}},
		{"Modify QP", verbs.ErrModifier, func(t *testing.T, b *bench) error {
			return fails(b.shared.Modify(verbs.Idle, verbs.QPModify{RecvDepth: new(8)}))
		}},
		{"Modify QP", verbs.ErrWRMax, func(t *testing.T, b *bench) error {
			return fails(b.plain.Modify(verbs.Idle, verbs.QPModify{ORD: new(2), SendDepth: new(65)}))
		}},
		{"Modify QP", verbs.ErrWRMax, func(t *testing.T, b *bench) error {
			return fails(b.plain.Modify(verbs.Idle, verbs.QPModify{SendDepth: new(8), RecvDepth: new(65)}))
		}},
		{"Modify QP", verbs.ErrORD, func(t *testing.T, b *bench) error {
			return fails(b.plain.Modify(verbs.Idle, verbs.QPModify{IRD: new(2), ORD: new(9)}))
		}},
		{"Modify QP", verbs.ErrIRD, func(t *testing.T, b *bench) error {
			return fails(b.plain.Modify(verbs.Idle, verbs.QPModify{ORD: new(2), IRD: new(9)}))
		}},
		{"Modify QP", verbs.ErrShrink, func(t *testing.T, b *bench) error {
			for range 2 {
				check(t, b.plain.PostSend(verbs.SendWR{Op: verbs.OpSend}))
			}
			b.prepared()
			return fails(b.plain.Modify(verbs.Idle, verbs.QPModify{ORD: new(2), SendDepth: new(1)}))
		}},
		{"Modify QP", verbs.ErrRQLimit, func(t *testing.T, b *bench) error {
			return fails(b.shared.Modify(verbs.Idle, verbs.QPModify{ORD: new(2), RQLimit: new(-1)}))
		}},
		{"Modify QP", verbs.ErrLLP, func(t *testing.T, b *bench) error {
			return fails(b.plain.Modify(verbs.RTS, verbs.QPModify{ORD: new(2)}))
		}},
		{"Modify QP", verbs.ErrResources, func(t *testing.T, b *bench) error {
			must(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, IRD: 8}))(t)
			b.prepared()
			return fails(b.plain.Modify(verbs.Idle, verbs.QPModify{SendDepth: new(8), IRD: new(8)}))
		}},
		{"Destroy QP", verbs.ErrQP, func(t *testing.T, b *bench) error { return b.dead.Destroy() }},
		{"Destroy QP", verbs.ErrQPWindows, func(t *testing.T, b *bench) error { return b.qp.Destroy() }},

		{"Allocate Non-Shared Memory Region STag", verbs.ErrPD, func(t *testing.T, b *bench) error { return fails(b.gone.AllocMR(1, false)) }},
		{"Allocate Non-Shared Memory Region STag", verbs.ErrResources, func(t *testing.T, b *bench) error { return fails(b.pd.AllocMR(5, false)) }},
		{"Register Non-Shared Memory Region", verbs.ErrPD, func(t *testing.T, b *bench) error { return fails(b.gone.Register(b.buf, allRights)) }},
		{"Query Memory Region", verbs.ErrSTag, func(t *testing.T, b *bench) error { return fails(b.rnic.QueryMR(0)) }},
		{"Query Memory Region", verbs.ErrSTag, func(t *testing.T, b *bench) error { return fails(b.rnic.QueryMR(b.window.STag().Index())) }},
		{"Deallocate STag", verbs.ErrSTag, func(t *testing.T, b *bench) error { return b.rnic.DeallocateSTag(0) }},
		{"Deallocate STag", verbs.ErrMRWindows, func(t *testing.T, b *bench) error { return b.under.Deallocate() }},
		{"Reregister Non-Shared Memory Region", verbs.ErrSTag, func(t *testing.T, b *bench) error {
			return b.twin.Reregister(b.pd, verbs.MRConfig{Buf: b.buf, Access: allRights})
		}},
		{"Reregister Non-Shared Memory Region", verbs.ErrMRWindows, func(t *testing.T, b *bench) error {
			return b.under.Reregister(b.pd, verbs.MRConfig{Buf: b.buf, Access: allRights})
		}},
		{"Register Shared Memory Region", verbs.ErrSTag, func(t *testing.T, b *bench) error {
			return fails(b.free.RegisterShared(b.pd, verbs.SharedConfig{Access: allRights}))
		}},
		{"Register Shared Memory Region", verbs.ErrSTag, func(t *testing.T, b *bench) error { // another key
			return fails(b.under.RegisterShared(b.pd, verbs.SharedConfig{Access: allRights, ExistingKey: 8, VA: 4096}))
		}},
		{"Register Shared Memory Region", verbs.ErrPD, func(t *testing.T, b *bench) error {
			return fails(b.twin.RegisterShared(b.gone, verbs.SharedConfig{Access: allRights}))
		}},
		{"Register Shared Memory Region", verbs.ErrAccess, func(t *testing.T, b *bench) error {
			return fails(b.twin.RegisterShared(b.pd, verbs.SharedConfig{}))
		}},
		{"Register Shared Memory Region", verbs.ErrVA, func(t *testing.T, b *bench) error {
			return fails(b.twin.RegisterShared(b.pd, verbs.SharedConfig{Access: allRights, VA: 1<<64 - 1}))
		}},
		{"Allocate Memory Window", verbs.ErrPD, func(t *testing.T, b *bench) error { return fails(b.gone.AllocMW()) }},
		{"Query Memory Window", verbs.ErrSTag, func(t *testing.T, b *bench) error { return fails(b.rnic.QueryMW(0)) }},
		{"Query Memory Window", verbs.ErrSTag, func(t *testing.T, b *bench) error { return fails(b.rnic.QueryMW(b.mr.STag().Index())) }},

		{"PostSQ", verbs.ErrQP, func(t *testing.T, b *bench) error { return b.dead.PostSend(verbs.SendWR{Op: verbs.OpSend}) }},
		{"PostSQ", verbs.ErrOp, func(t *testing.T, b *bench) error { return b.qp.PostSend(verbs.SendWR{Op: 99}) }},
		{"PostSQ", verbs.ErrSGLFormat, func(t *testing.T, b *bench) error { return b.qp.PostSend(verbs.SendWR{Op: verbs.OpRead}) }},
		{"PostSQ", verbs.ErrSGLLength, func(t *testing.T, b *bench) error {
			return b.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: make([]verbs.SGE, 5)})
		}},
		{"PostSQ", verbs.ErrModifier, func(t *testing.T, b *bench) error { return b.qp.PostSend(verbs.SendWR{Op: verbs.OpInvalidate}) }},
		{"PostSQ", verbs.ErrModifier, func(t *testing.T, b *bench) error { return b.qp.PostSend(verbs.SendWR{Op: verbs.OpBind}) }},
		{"PostSQ", verbs.ErrModifier, func(t *testing.T, b *bench) error { return b.qp.PostSend(verbs.SendWR{Op: verbs.OpFastRegister}) }},
		{"PostRQ", verbs.ErrQP, func(t *testing.T, b *bench) error { return b.dead.PostRecv(verbs.RecvWR{}) }},
		{"PostRQ", verbs.ErrSGLLength, func(t *testing.T, b *bench) error {
			return b.qp.PostRecv(verbs.RecvWR{SGL: make([]verbs.SGE, 5)})
		}},
		{"PostRQ", verbs.ErrSGLLength, func(t *testing.T, b *bench) error {
			return b.srq.PostRecv(verbs.RecvWR{SGL: make([]verbs.SGE, 5)})
		}},
		{"PostRQ", verbs.ErrModifier, func(t *testing.T, b *bench) error {
			return must(b.srq.User())(t).PostRecv(verbs.RecvWR{SGL: []verbs.SGE{{Length: 1}}})
		}},
		{"PostRQ", verbs.ErrRQOfSRQ, func(t *testing.T, b *bench) error { return b.shared.PostRecv(verbs.RecvWR{}) }},
		{"Open RNIC", verbs.ErrResources, func(t *testing.T, b *bench) error {
			var open []*verbs.RNIC
			defer func() {
				for _, r := range open {
					check(t, r.Close())
				}
			}()
			for {
				r, err := verbs.Open(verbs.Config{})
				if err != nil {
					return err
				}
				open = append(open, r)
			}
		}},
		{"Allocate PD", verbs.ErrResources, until(func(b *bench) error { return fails(b.rnic.AllocPD()) })},
		{"Create CQ", verbs.ErrResources, until(func(b *bench) error { return fails(b.rnic.CreateCQ(verbs.CQConfig{Entries: 1})) })},
		{"Query CQ", verbs.ErrCQ, func(t *testing.T, b *bench) error { return fails(b.deadCQ.Query()) }},
		{"Modify CQ", verbs.ErrCQ, func(t *testing.T, b *bench) error { return fails(b.deadCQ.Resize(2)) }},
		{"Modify CQ", verbs.ErrResources, func(t *testing.T, b *bench) error { return fails(b.cq.Resize(4096)) }},
		{"Destroy CQ", verbs.ErrCQ, func(t *testing.T, b *bench) error { return b.deadCQ.Destroy() }},
		{"Poll for Completion", verbs.ErrCQ, func(t *testing.T, b *bench) error { return fails(b.deadCQ.PollOne()) }},
		{"Request Completion Notification", verbs.ErrCQ, func(t *testing.T, b *bench) error { return b.deadCQ.RequestNotify(verbs.NotifyNext) }},
		{"Create S-RQ", verbs.ErrResources, until(func(b *bench) error { return fails(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 1})) })},
		{"Query S-RQ", verbs.ErrSRQ, func(t *testing.T, b *bench) error { return fails(b.deadSRQ.Query()) }},
		{"Modify S-RQ", verbs.ErrSRQ, func(t *testing.T, b *bench) error { return fails(b.deadSRQ.Modify(verbs.SRQModify{WRs: new(2)})) }},
		{"Modify S-RQ", verbs.ErrResources, func(t *testing.T, b *bench) error {
			must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 14}))(t)
			b.prepared()
			return fails(b.srq.Modify(verbs.SRQModify{WRs: new(5)}))
		}},
		{"Destroy S-RQ", verbs.ErrSRQ, func(t *testing.T, b *bench) error { return b.deadSRQ.Destroy() }},
		{"Create QP", verbs.ErrResources, until(func(b *bench) error {
			return fails(b.pd.CreateQP(verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq}))
		})},
		{"Register Non-Shared Memory Region", verbs.ErrResources, until(func(b *bench) error { return fails(b.pd.Register(b.buf[:8], allRights)) })},
		{"Register Shared Memory Region", verbs.ErrResources, until(func(b *bench) error {
			return fails(b.twin.RegisterShared(b.pd, verbs.SharedConfig{Access: allRights}))
		})},
		{"Allocate Memory Window", verbs.ErrResources, until(func(b *bench) error { return fails(b.pd.AllocMW()) })},
		{"PostSQ", verbs.ErrFull, until(func(b *bench) error { return b.plain.PostSend(verbs.SendWR{Op: verbs.OpSend}) })},
		{"PostSQ", verbs.ErrState, func(t *testing.T, b *bench) error {
			b.closing()
			return b.qp.PostSend(verbs.SendWR{Op: verbs.OpSend})
		}},
		{"PostRQ", verbs.ErrFull, until(func(b *bench) error { return b.plain.PostRecv(verbs.RecvWR{}) })},
		{"PostRQ", verbs.ErrFull, until(func(b *bench) error { return b.srq.PostRecv(verbs.RecvWR{}) })},
		{"PostRQ", verbs.ErrState, func(t *testing.T, b *bench) error {
			b.closing()
			return b.qp.PostRecv(verbs.RecvWR{})
		}},
		{"PostRQ", verbs.ErrSRQ, func(t *testing.T, b *bench) error { return b.deadSRQ.PostRecv(verbs.RecvWR{}) }},
	} {
		t.Run(fmt.Sprintf("%s: %v", tt.verb, tt.result), func(t *testing.T) {
			b := newBench(t)
			b.prepared()
			err := tt.do(t, b)
			wantError(t, err, tt.result)
			for _, o := range results {
				if o != tt.result && errors.Is(err, o) {
					t.Errorf("%v is also %v", err, o)
				}
			}
			b.unchanged()
		})
		if had[tt.verb] == nil {
			had[tt.verb] = map[error]bool{}
		}
		had[tt.verb][tt.result] = true
	}
	// The page says the same of each verb.
	for verb, want := range resultsOnPage(t) {
		for result := range want {
			if !had[verb][result] {
				t.Errorf("%s: %v is in docs/verbs.md and was not had", verb, result)
			}
		}
		for result := range had[verb] {
			if !want[result] {
				t.Errorf("%s: %v was had and is not in docs/verbs.md", verb, result)
			}
		}
	}
}
