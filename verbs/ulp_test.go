package verbs

import (
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/rdmap"
)

// unconnected makes a queue pair, whose RNIC is closed with the test.
func unconnected(t *testing.T) (pd *PD, qp *QP, check func(error)) {
	check = func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(Config{})
	check(err)
	t.Cleanup(func() { check(r.Close()) })
	pd, err = r.AllocPD()
	check(err)
	cq, err := r.CreateCQ(CQConfig{Entries: 8})
	check(err)
	qp, err = pd.CreateQP(QPConfig{SendCQ: cq, RecvCQ: cq})
	check(err)
	return pd, qp, check
}

// An Invalidate Local STag waits for the Sends and Writes before it to leave. For
// answers to the peer it does not, however many wait to leave: there may be more
// of them by then, and so on forever.
func TestAnInvalidateWaitsForNoAnswerToThePeer(t *testing.T) {
	pd, qp, check := unconnected(t)
	read, err := pd.Register(make([]byte, 100), LocalRead|RemoteRead)
	check(err)
	going, err := pd.Register(make([]byte, 100), LocalRead)
	check(err)
	check(qp.PostSend(SendWR{Op: OpSend, SGL: []SGE{read.SGE(0, 100)}}))
	check(qp.PostSend(SendWR{Op: OpInvalidate, Invalidate: going.STag()}))

	u := ulp{qp}
	u.out.SetFrames(0, 0)
	if _, f := u.Source(nil, uint32(read.STag()), read.Base(), 100); f != ddp.NoFault {
		t.Fatal(f)
	}
	var op rdmap.Operation
	if !u.Next(&op) || op.Opcode != rdmap.OpSend {
		t.Fatalf("the first operation is %+v", op)
	}
	u.out.SetFrames(1, 1)
	if _, err := u.Gather(nil, op.Ticket, 0, 100); err != nil {
		t.Fatal(err)
	}
	u.out.Release()
	if u.Next(&rdmap.Operation{}) || !going.Valid() {
		t.Error("the Invalidate did not wait for the Send before it")
	}
	u.Sent(op.Ticket) // and the answer, for all that this side knows, has not left
	if u.Next(&rdmap.Operation{}) || going.Valid() {
		t.Error("the Invalidate is still waiting")
	}
}

// An Invalidate Local STag of memory that an answer to the peer was gathered
// from in the same batch takes effect: it does not wait for its own goroutine.
func TestAnInvalidateOfWhatThePeerReadsDoesNotWaitForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := Open(Config{})
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		check(err)
		pd, err := r.AllocPD()
		check(err)
		cq, err := r.CreateCQ(CQConfig{Entries: 8})
		check(err)
		qp, err := pd.CreateQP(QPConfig{SendCQ: cq, RecvCQ: cq})
		check(err)
		read, err := pd.Register(make([]byte, 100), LocalRead|RemoteRead)
		check(err)
		check(qp.PostSend(SendWR{Op: OpInvalidate, Invalidate: read.STag()}))

		u := ulp{qp}
		u.out.SetFrames(0, 0)
		if _, f := u.Source(nil, uint32(read.STag()), read.Base(), 100); f != ddp.NoFault {
			t.Fatal(f)
		}
		if u.Next(&rdmap.Operation{}) || read.Valid() {
			t.Error("the Invalidate has not taken effect")
		}
		check(r.Close())
	})
}

// An Invalidate Local STag waits for all the Sends of a run before it to leave.
func TestAnInvalidateWaitsForARunOfSends(t *testing.T) {
	pd, qp, check := unconnected(t)
	going, err := pd.Register(make([]byte, 100), LocalRead)
	check(err)
	for range 3 {
		check(qp.PostSend(SendWR{Op: OpSend, SGL: []SGE{going.SGE(0, 100)}}))
	}
	check(qp.PostSend(SendWR{Op: OpInvalidate, Invalidate: going.STag()}))

	u := ulp{qp}
	u.out.SetFrames(0, 0)
	run := new(ddp.Run)
	ticket := u.ShortRun(rdmap.OpSend, run, 100)
	if run.N != 3 {
		t.Fatalf("a run of %d", run.N)
	}
	u.Took(ticket + 3)
	u.out.Release()
	for sent := range uint64(2) {
		u.Sent(ticket + sent)
		if u.Next(&rdmap.Operation{}) || !going.Valid() {
			t.Fatalf("the Invalidate did not wait for Send %d", sent+1)
		}
	}
	u.out.Done(3)
	u.Sent(ticket + 2)
	if u.Next(&rdmap.Operation{}) || going.Valid() {
		t.Error("the Invalidate is still waiting")
	}
}
