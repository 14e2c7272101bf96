package verbs

import (
	"testing"

	"github.com/weft-rdma/weft/ddp"
)

// A queue pair that is modified between two messages of a run to let no more in takes no more of it:
// they are looked up one by one, and refused.
func TestARunEndsWhenTheQueuePairLetsNothingMoreIn(t *testing.T) {
	pd, qp, check := unconnected(t)
	mr, err := pd.Register(make([]byte, 64), LocalRead|LocalWrite|RemoteRead|RemoteWrite)
	check(err)
	check(qp.PostSend(SendWR{Op: OpRead, SGL: []SGE{mr.SGE(0, 8)}, Remote: mr.Remote(8)}))
	u, stag := ulp{qp}, uint32(mr.STag())
	found := func() (target, sink bool) {
		return u.AnotherTarget(stag, mr.Base(), 8) != nil, u.AnotherSink(0, stag, mr.Base(), 8) != nil
	}
	if _, f := u.in.Resolve(nil, stag, mr.Base(), 8, RemoteWrite); f != ddp.NoFault {
		t.Fatal(f)
	}
	defer u.in.Forget()
	if target, sink := found(); !target || !sink {
		t.Errorf("target found %t, sink found %t, expected both", target, sink)
	}
	qp.inbound.set(0, false)
	if target, sink := found(); target || sink {
		t.Errorf("after nothing is let in any more: target found %t, sink found %t", target, sink)
	}
	qp.inbound.set(0, true) // sinks need Local Write alone
	if target, sink := found(); target || !sink {
		t.Errorf("after only responses are let in: target found %t, sink found %t", target, sink)
	}
}

// A completion queue that fails, or is destroyed, between two messages of a run takes no more of it.
func TestACompletionQueueThatIsGoneTakesNoRun(t *testing.T) {
	for name, end := range map[string]func(cq *CQ){
		"failed":    func(cq *CQ) { cq.failed = errCQFailed },
		"destroyed": func(cq *CQ) { cq.dead = true },
	} {
		_, qp, check := unconnected(t)
		check(qp.PostRecv(RecvWR{}))
		cq := qp.cfg.RecvCQ
		push := func() bool { return cq.pushReceives(&qp.rq, []uint32{0}, false) }
		cq.mu.Lock()
		end(cq)
		cq.mu.Unlock()
		if push() || qp.rq.head.Load() != 0 {
			t.Errorf("%s: it has taken a completion", name)
		}
		cq.mu.Lock()
		cq.failed, cq.dead = nil, false
		cq.mu.Unlock()
		if !push() || qp.rq.head.Load() != 1 {
			t.Errorf("%s: without that it takes none", name)
		}
	}
}
