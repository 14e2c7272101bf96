package verbs

import "testing"

// When a shared receive queue fails, those that wait in its line leave it, and a
// message that was given a receive while it waited has it (Verbs §6.3.6).
func TestTheLineOfASharedQueueThatFailsIsEmpty(t *testing.T) {
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := Open(Config{})
	check(err)
	defer r.Close()
	pd, err := r.AllocPD()
	check(err)
	cq, err := r.CreateCQ(CQConfig{Entries: 8})
	check(err)
	srq, err := pd.CreateSRQ(SRQConfig{WRs: 8})
	check(err)
	var ends [2]*recvQueue
	for i := range ends {
		qp, err := pd.CreateQP(QPConfig{SendCQ: cq, RecvCQ: cq, SRQ: srq, PauseOnEmptyRQ: true})
		check(err)
		ends[i] = &qp.rq
		if ok, failed := ends[i].claim(); ok || failed {
			t.Fatalf("there is a receive: %v, or will never be one: %v", ok, failed)
		}
	}
	check(srq.PostRecv(RecvWR{ID: 7}))
	check(srq.Fail())
	if ok, failed := ends[0].claim(); !ok || failed {
		t.Errorf("the message that had a receive finds one: %v, or never will: %v", ok, failed)
	}
	if ok, failed := ends[1].claim(); ok || !failed {
		t.Errorf("the message that had none finds one: %v, or never will: %v", ok, failed)
	}
	if n := srq.waiting.Len(); n > 0 {
		t.Errorf("%d are in line still", n)
	}
}
