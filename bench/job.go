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

	Address    string   // that the target listens at, without port; "" for loopback
	Congestion string   // TCP congestion control of the sample's sockets; "" leaves the system's
	CPUs       []int    // that the target may run on; nil leaves it to the scheduler
	Shared     bool     // the ends may have to share a processor: an end that polls yields it
	Program    string   // of peers that are programs of their own: its file
	Library    string   // of Perftest: the directory of the libibverbs that Program runs programs with
	Dir        string   // directories that are served are made in it
	Profile    string   // file for a CPU profile of the target; "" for none
	Seed       uint64   // of the data pattern
	Remotes    []Remote // the initiator's windows, one a connection
}

// Remote names an end's window to the other end: the STag and tagged offset
// of its first octet. Only Weft has it.
type Remote struct {
	STag uint32
	TO   uint64
}

// Ready says where the target waits for the sample's connections, or why it
// does not.
type Ready struct {
	Addr    string
	Remotes []Remote
	Err     string
}

// Done says that the initiator has had enough.
type Done struct {
	Messages uint64 // sent since the connections began
	Err      string // the initiator failed: the target is to give up
}

// An Outcome ends the sample.
type Outcome struct {
	Served
	Err string // "" when the target is content, also with the data it got
}

// Served is what the target measured.
type Served struct {
	CPU    time.Duration // that the target used since Ready
	Octets uint64        // of Footprint: memory of each connection
}

// A Sample is what was measured.
type Sample struct {
	Messages uint64           // in Elapsed
	Total    uint64           // since the connections began
	Elapsed  time.Duration    // to the moment when the last message was known to be in place
	Trips    [4]time.Duration // round trips, at percentiles; of ping-pong only
	Longest  time.Duration    // of the waits whose percentiles Trips are; of crowds only
	CPU      time.Duration    // both processes together
	Octets   uint64           // of Footprint: memory of each connection at the end that needs more
}

// percentiles are those of Sample.Trips, as shares.
var percentiles = [4]float64{0.50, 0.90, 0.99, 0.999}
