// This file is what a Holder remembers of one registration: the frames that refer to it.

package memory

import "sync"

const (
	// fewRuns is how many runs a Holder keeps the memory of when it has forgotten them: what a
	// peer has accessed in turns must not stay with a queue pair that is idle.
	fewRuns = 8

	// manyRuns are enough for a batch in which every second frame refers to another
	// registration. More than fewRuns are in memory from a pool.
	manyRuns = 1024
)

var runsPool = sync.Pool{New: func() any { return new([manyRuns]run) }}

// A use is a registration that a Holder remembers.
type use struct {
	reg  *registration
	stag STag
	held bool

	// runs[done:] are, ascending, the frames that refer to it and have not been
	// written; at least one. The next use in the same place reuses a short slice.
	runs []run
	done int
}

// A run is a range of frame numbers.
type run struct{ first, last uint64 }

func (u *use) first() uint64 { return u.runs[u.done].first }
func (u *use) last() uint64  { return u.runs[len(u.runs)-1].last }

// refer records that the frames from first to last refer to it.
func (u *use) refer(first, last uint64) {
	if len(u.runs) > u.done {
		if r := &u.runs[len(u.runs)-1]; first <= r.last+1 {
			r.last = last
			return
		}
	}
	if len(u.runs) == cap(u.runs) {
		u.makeRoom()
	}
	u.runs = append(u.runs, run{first, last})
}

// makeRoom makes room for another run where runs is full, unless that grows by itself.
func (u *use) makeRoom() {
	switch {
	case u.done > 0:
		u.runs = u.runs[:copy(u.runs, u.runs[u.done:])]
		u.done = 0
	case cap(u.runs) >= fewRuns && cap(u.runs) < manyRuns:
		u.runs = append(runsPool.Get().(*[manyRuns]run)[:0], u.runs...)
	}
}

// forget forgets all but the memory of a few runs.
func (u *use) forget() {
	kept := u.runs[:0]
	if cap(kept) > fewRuns {
		if cap(kept) == manyRuns {
			runsPool.Put((*[manyRuns]run)(kept[:manyRuns]))
		}
		kept = nil
	}
	*u = use{runs: kept}
}

// written records that the frames below n were written. The last run has later ones.
func (u *use) written(n uint64) {
	for u.runs[u.done].last < n {
		u.done++
	}
	r := &u.runs[u.done]
	r.first = max(r.first, n)
}

// dropped records that the frames from n on were dropped. The first run has earlier
// ones.
func (u *use) dropped(n uint64) {
	for u.runs[len(u.runs)-1].first >= n {
		u.runs = u.runs[:len(u.runs)-1]
	}
	r := &u.runs[len(u.runs)-1]
	r.last = min(r.last, n-1)
}
