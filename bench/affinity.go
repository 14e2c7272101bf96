// Which processors the two ends run on. Left to itself, a scheduler may keep
// both ends on one core or spread them, and changes its mind: the half round
// trip then varies tenfold. So each sample says where its ends run.

package main

import "runtime"

// A Placement is where the two ends of a sample run.
type Placement struct {
	Initiator, Target []int // numbers of processors; nil leaves it to the scheduler
}

// place chooses for w among the processors allowed:
//   - streams, and ping-pong that polls: each end has its own half;
//   - ping-pong that parks: both ends share one processor, since waking
//     another one costs more than the message itself and varies most.
func place(w Workload, allowed []int) Placement {
	if len(allowed) < 2 {
		return Placement{}
	}
	if w.Shape == PingPong && !w.Spin {
		last := allowed[len(allowed)-1:]
		return Placement{last, last}
	}
	half := len(allowed) / 2
	return Placement{allowed[:half], allowed[half:]}
}

// settle binds the process to cpus, nil being wherever it likes, and tells the
// Go scheduler how many that are. It would find out by itself, within a second:
// with more threads than processors, goroutines that poll would keep those from
// running that they poll for.
func settle(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	if err := bind(cpus); err != nil {
		return err
	}
	runtime.GOMAXPROCS(len(cpus))
	return nil
}
