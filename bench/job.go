// What the two processes say to each other: JSON documents, one after the
// other, over the peer's standard input and output. A sample is Job, Ready,
// the traffic itself, Done, Outcome.

package main

import "time"

// A Job asks the peer to be the target of one sample.
type Job struct {
	Workload Workload
	Warmup   time.Duration // not counted, at the sample's beginning
	Sample   time.Duration // counted
	Limit    time.Duration // after which either end gives up

	Congestion string // TCP congestion control of the sample's socket; "" leaves the system's
	CPUs       []int  // that the target may run on; nil leaves it to the scheduler
	Profile    string // file for a CPU profile of the target; "" for none
	Seed       uint64 // of the data pattern
	Remote     Remote // the initiator's window
}

// Remote names an end's window to the other end: the STag and tagged offset
// of its first octet. Plain TCP leaves it zero.
type Remote struct {
	STag uint32
	TO   uint64
}

// Ready says where the target waits for the sample's connection, or why it
// does not.
type Ready struct {
	Addr   string
	Remote Remote
	Err    string
}

// Done says that the initiator has had enough.
type Done struct {
	Messages uint64 // sent since the connection began
	Err      string // the initiator failed: the target is to give up
}

// An Outcome ends the sample.
type Outcome struct {
	CPU time.Duration // that the target's process used since Ready
	Err string        // "" when the target is content, also with the data it got
}

// A Sample is what the initiator measured.
type Sample struct {
	Messages uint64        // in Elapsed
	Total    uint64        // since the connection began
	Elapsed  time.Duration // to the moment when the last message was known to be in place
	P50, P99 time.Duration // half round trips; of ping-pong only
	CPU      time.Duration // both processes together
}

// value is the sample's figure in the metric's unit.
func (s Sample) value(m Metric, size int) float64 {
	rate := float64(s.Messages) / s.Elapsed.Seconds()
	switch m {
	case Bandwidth:
		return rate * float64(size)
	case MessageRate:
		return rate
	}
	return float64(s.P50.Nanoseconds())
}
