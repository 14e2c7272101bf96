package verbs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A bench is something of each kind of object, for verbs to fail on.
type bench struct {
	*side
	peer   *side           // whose queue pair is connected with that of the side
	cq     *verbs.CQ       // of two entries, with two completions
	srq    *verbs.SRQ      // of 4 receives, 3 posted, S-RQ Limit 2
	shared *verbs.QP       // Idle, uses srq
	plain  *verbs.QP       // Idle, with nothing posted
	dead   *verbs.QP       // destroyed
	free   *verbs.MR       // allocated, Invalid, one entry
	under  *verbs.MR       // a region with a window bound to it, VA 4096
	window *verbs.MW       // the window, bound for the side's queue pair
	twin   *verbs.MR       // a Shared region
	spare  *verbs.MW       // not bound
	handle verbs.HandlerID // a completion handler

	// What is no more:
	gone    *verbs.PD
	deadCQ  *verbs.CQ
	deadSRQ *verbs.SRQ

	wire   *iwarptest.Conn // the peer's end of the connection
	before string          // the account before the verb that fails
}

// benchLimits leave room for what a bench has and a few more.
var benchLimits = verbs.Limits{
	PDs: 4, CQs: 6, CQEntries: 4096, TotalCQEntries: 9000, QPs: 6, WRs: 64, SGEs: 8, IRD: 8, ORD: 8, TotalIRD: 18, TotalORD: 18,
	SRQs: 3, SRQWRs: 16, TotalSRQWRs: 18, Regions: 8, RegionsOctets: 1<<20 + 1<<16, Windows: 4, ListEntries: 4, CompletionHandlers: 1,
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{side: newSideOf(t, verbs.Config{Limits: benchLimits}, verbs.QPConfig{IRD: 4, ORD: 4, BindWindows: true, Privileged: true, SendDepth: 2, RecvDepth: 2}), peer: newSide(t, reads)}
	x, y := iwarptest.Pipe()
	join(t, b.qp, b.peer.qp, x, y, cm.Params{})
	b.wire = y
	b.handle = must(b.rnic.SetCompletionHandler(func(*verbs.CQ) {}, 0))(t)
	b.cq = must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 2, Handler: b.handle}))(t)
	flusher := b.flusher(verbs.QPConfig{SendCQ: b.cq})
	for range 2 {
		check(t, flusher.PostSend(verbs.SendWR{Op: verbs.OpSend}))
	}
	b.srq = must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 4, Limit: 2}))(t)
	for range 3 {
		check(t, b.srq.PostRecv(verbs.RecvWR{}))
	}
	b.shared, b.plain, b.dead = b.newQP(verbs.QPConfig{SRQ: b.srq}), b.newQP(reads), b.newQP(reads)
	check(t, b.dead.Destroy())
	b.free = must(b.pd.AllocMR(1, false))(t)
	bindable := allRights | verbs.BindWindow
	b.under = must(b.pd.RegisterMR(verbs.MRConfig{Buf: b.buf[:100], VA: 4096, Access: bindable, Key: 7}))(t)
	b.window, b.spare = must(b.pd.AllocMW())(t), must(b.pd.AllocMW())(t)
	binding := b.window.Binding(b.under, 0, 50, verbs.RemoteRead)
	b.post(verbs.SendWR{ID: 1, Op: verbs.OpBind, Flags: verbs.Signaled, Bind: &binding})
	wantDone(t, b.sendCQ, done{1, verbs.Success})
	b.twin = must(b.region(200, 100, allRights).RegisterShared(b.pd, verbs.SharedConfig{Access: allRights}))(t)
	b.gone = must(b.rnic.AllocPD())(t)
	check(t, b.gone.Dealloc())
	b.deadCQ, b.deadSRQ = must(b.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t), must(b.pd.CreateSRQ(verbs.SRQConfig{WRs: 1}))(t)
	check(t, b.deadCQ.Destroy())
	check(t, b.deadSRQ.Destroy())
	return b
}

// account is all that can be asked of the bench's objects.
func (b *bench) account() string {
	render := func(v any, err error) string { return fmt.Sprintf("%+v, %v\n", v, err) }
	s := render(b.rnic.Usage(), nil) + render(b.rnic.Query())
	for _, cq := range []*verbs.CQ{b.cq, b.sendCQ, b.recvCQ} {
		s += render(cq.Query())
	}
	s += render(b.srq.Query())
	for _, qp := range []*verbs.QP{b.qp, b.shared, b.plain, b.dead} {
		s += render(qp.Query())
	}
	for _, mr := range []*verbs.MR{b.mr, b.free, b.under, b.twin} {
		a, err := mr.Query()
		s += render(a, err) + render(mr.STag(), nil) + render([2]uint64{mr.Base(), mr.Len()}, nil)
	}
	for _, mw := range []*verbs.MW{b.window, b.spare} {
		s += render(mw.Query())
	}
	return s
}

// fails makes a verb of no arguments that gives nothing but an error.
func fails[T any](_ T, err error) error { return err }

// prepared says that what comes next is the verb that fails.
func (b *bench) prepared() { b.before = b.account() }

// unchanged compares with what was before.
func (b *bench) unchanged() {
	b.t.Helper()
	if after := b.account(); after != b.before {
		b.t.Errorf("something has changed (-before +after):\n%s", cmp.Diff(strings.Split(b.before, "\n"), strings.Split(after, "\n")))
	}
}

// until repeats a verb until it fails.
func until(verb func(b *bench) error) func(*testing.T, *bench) error {
	return func(t *testing.T, b *bench) error {
		for {
			b.prepared()
			if err := verb(b); err != nil {
				return err
			}
		}
	}
}

// closing brings the connected queue pair into Closing.
func (b *bench) closing() {
	b.t.Helper()
	b.wire.Hold()                                 // the peer's FIN
	go func() { _ = b.qp.Close(b.t.Context()) }() // which the end of the test cuts short
	reach(b.t, b.qp, verbs.Closing)
	b.prepared()
}
