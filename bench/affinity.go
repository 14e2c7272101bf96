// Which processors the two ends run on. Left to itself, a scheduler may keep
// both ends on one core or spread them, and changes its mind: the half round
// trip then varies tenfold. So each sample says where its ends run.

package main

import "runtime"

// A Placement is where the two ends of a sample run.
type Placement struct {
	Name              string // for people and programs
	Initiator, Target []int  // numbers of processors; nil leaves it to the scheduler
}

// The names of placements.
const (
	apart    = "two cores" // each end has its own half of the processors; on a machine of two, one core each
	together = "one core"  // both ends share one processor
	anywhere = "all cores" // both ends may use every processor
	unplaced = "scheduler" // nothing is bound
)

// shared says that an end that polls may keep the other from running.
func (p Placement) shared() bool { return p.Name != apart }

// place chooses for w among the processors allowed:
//   - streams, and ping-pong that polls: each end has its own half;
//   - ping-pong that waits for events: both ends share one processor, since waking
//     another one costs more than the message itself and varies most;
//   - ping-pong that waits and is not pinned: every processor, as programs mostly run;
//   - several connections: every processor, or they could not be faster than one.
func place(w Workload, allowed []int, pin bool) Placement {
	last := max(0, len(allowed)-1)
	half := len(allowed) / 2
	switch {
	case !pin || len(allowed) < 2:
		return Placement{Name: unplaced}
	case w.Peer == Before: // it places its own two processes so
		return Placement{apart, allowed, allowed}
	case w.Unpinned || w.Path == Delayed:
		return Placement{anywhere, allowed, allowed}
	case w.Shape == PingPong && !w.Polling:
		return Placement{together, allowed[last:], allowed[last:]}
	case w.Shape == Stream && w.connections() > 1 || w.Shape == Footprint:
		return Placement{anywhere, allowed, allowed}
	}
	return Placement{apart, allowed[:half], allowed[half:]}
}

// setAffinity binds the process to cpus, if there are any, and sets GOMAXPROCS to their
// number at once. The scheduler would find out only within a second. Until then it
// would have more threads than processors, and goroutines that poll would keep those from
// running that they wait for.
func setAffinity(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	if err := bind(cpus); err != nil {
		return err
	}
	runtime.GOMAXPROCS(len(cpus))
	return nil
}
