// FetchAdd over Weft: one at a time, each waited for, or a few outstanding. The target's
// program has no part in it.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// addition is a request that adds 1 to the target's number. The answer, which is the number
// of those before it, arrives in a slot.
func (l *link) addition(slot int) verbs.SendWR {
	size := l.job.Workload.Size
	return verbs.SendWR{
		Op: verbs.OpFetchAdd, Flags: verbs.Signaled, SGL: []verbs.SGE{l.mr.SGE(landing+slot*size, size)},
		Remote: verbs.Remote{STag: l.remote.STag, TO: l.remote.TO + landing}, Atomic: verbs.Atomic{Data: 1},
	}
}

// found is the answer in a slot.
func (l *link) found(slot int) *uint64 {
	size := l.job.Workload.Size
	return numberIn(l.memory[landing+slot*size:][:size])
}

// additions are how many FetchAdds are outstanding in a stream. They are posted, and
// signaled, in two halves.
const additions = 16

// fetchAdds keeps additions outstanding until the time is up.
func (l *link) fetchAdds(ctx context.Context) (Sample, error) {
	const half = additions / 2
	wrs := make([]verbs.SendWR, additions)
	for i := range wrs {
		wrs[i] = l.addition(i)
		if i%half != half-1 {
			wrs[i].Flags = 0
		}
	}
	post := func(n int) error {
		_, err := l.qp.PostSends(wrs[n*half:][:half])
		return err
	}
	run := newStopwatch(l.job)
	if err := errors.Join(post(0), post(1)); err != nil {
		return Sample{}, err
	}
	for n := 0; ; n = 1 - n {
		if _, err := l.completion(ctx); err != nil {
			return Sample{}, err
		}
		run.add(half)
		if got := *l.found(n*half + half - 1); got != run.messages-1 {
			return Sample{}, fmt.Errorf("addition %d found %d", run.messages, got)
		}
		if run.over() {
			break
		}
		if err := post(n); err != nil {
			return Sample{}, err
		}
	}
	run.add(half)
	if _, err := l.completion(ctx); err != nil { // of the other half
		return Sample{}, err
	}
	return run.stop(), nil
}

// fetchAdd adds 1 to the target's number until the time is up. Each answer is
// the number of those before it.
func (l *link) fetchAdd(ctx context.Context) (Sample, error) {
	wr, found := l.addition(0), l.found(0)
	run := newStopwatch(l.job)
	trips := newTrips()
	for t0 := time.Now(); !run.overAt(t0); {
		if err := l.qp.PostSend(wr); err != nil {
			return Sample{}, err
		}
		if _, err := l.completion(ctx); err != nil {
			return Sample{}, err
		}
		if *found != run.messages {
			return Sample{}, fmt.Errorf("FetchAdd found %d after %d additions of 1", *found, run.messages)
		}
		run.add(1)
		t1 := time.Now()
		trips.add(run, t1.Sub(t0))
		t0 = t1
	}
	s := run.stop()
	s.Trips = trips.percentiles()
	return s, nil
}
