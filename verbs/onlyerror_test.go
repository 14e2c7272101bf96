package verbs

import (
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
)

// One work request at most of a queue pair completes in error: what fails when the
// stream is being ended already, for whatever reason, is flushed.
//
// Claims: V-6.2.4-4
func TestWhatFailsAfterTheStreamWasEndedIsFlushed(t *testing.T) {
	nothing := SGE{STag: 1, Length: 8}
	for _, tt := range []struct {
		name string
		fail func(u ulp)
	}{
		{"a request", func(u ulp) { u.Failed(0, wqError{status: AccessViolation}) }},
		{"an answered Read", func(u ulp) { _ = u.Responded(0, 0) }},
		{"a receive", func(u ulp) { _, _ = u.Receive(); _, _ = u.Scatter(nil, 0, 8) }},
		{"a receive longer than any message", func(u ulp) { u.rq.front().length = 1 << 32; _, _ = u.Receive() }},
		{"a receive, for its message", func(u ulp) { _ = u.conn.Load().violated(reportedInWC{wqError{status: Flushed}}) }},
		{"the queue pair", func(u ulp) { _ = u.QP.Fail() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := Open(Config{})
			check := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			check(err)
			defer r.Close()
			pd, err := r.AllocPD()
			check(err)
			cq, err := r.CreateCQ(CQConfig{Entries: 8})
			check(err)
			qp, err := pd.CreateQP(QPConfig{SendCQ: cq, RecvCQ: cq, ORD: 1})
			check(err)
			check(qp.PostRecv(RecvWR{SGL: []SGE{nothing}}))
			x, y := iwarptest.Pipe() // the peer says nothing
			defer y.Close()
			check(qp.Establish(mpa.NewConn(x, mpa.Params{Revision: mpa.Revision2, Initiator: true}), Terms{ORD: 1, Initiator: true}))
			check(qp.PostSend(SendWR{Op: OpReadInvalidate, SGL: []SGE{nothing}, Remote: Remote{STag: 1}}))

			if !qp.workFailed(wqError{status: InvalidSTag}) || qp.State() != Terminate {
				t.Fatal("the stream is not being ended")
			}
			tt.fail(ulp{qp})
			qp.Abort()
			if _, err := qp.WaitState(t.Context(), Error); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				check(cq.Wait(t.Context()))
				wc, err := cq.PollOne()
				check(err)
				if wc.Status != Flushed {
					t.Errorf("%v completes with %v", wc.Op, wc.Status)
				}
			}
		})
	}
}
