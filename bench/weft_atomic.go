// FetchAdd over Weft: one at a time, each waited for. The target's program has
// no part in it.

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/verbs"
)

// fetchAdd adds 1 to the target's number until the time is up. Each answer is
// the number of those before it.
func (l *link) fetchAdd(ctx context.Context) (Sample, error) {
	size := l.job.Workload.Size
	wr := verbs.SendWR{
		Op: verbs.OpFetchAdd, Flags: verbs.Signaled, SGL: []verbs.SGE{l.mr.SGE(landing, size)},
		Remote: verbs.Remote{STag: l.remote.STag, TO: l.remote.TO + landing}, Atomic: verbs.Atomic{Data: 1},
	}
	found := numberIn(l.memory[landing : landing+size])
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
