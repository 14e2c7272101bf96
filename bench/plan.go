// The plan: which comparisons are made, and the order in which their
// workloads are sampled so that each comparison is between neighbours in time.

package main

import (
	"fmt"
	"slices"
)

// A Metric is what a comparison is about.
type Metric string

const (
	Bandwidth   Metric = "bandwidth"    // octets a second, one way
	MessageRate Metric = "message_rate" // messages a second, one way
	Latency     Metric = "latency"      // nanoseconds, half a round trip, p50
)

// unit of the metric's figures.
func (m Metric) unit() string {
	switch m {
	case Bandwidth:
		return "bytes_per_second"
	case MessageRate:
		return "messages_per_second"
	}
	return "nanoseconds"
}

// better says which way a ratio of Weft to TCP should go.
func (m Metric) better() string {
	if m == Latency {
		return "lower"
	}
	return "higher"
}

// A Comparison sets one workload over Weft against one over plain TCP.
type Comparison struct {
	Metric Metric
	Weft   Workload
	TCP    Workload
}

func (c Comparison) String() string {
	return fmt.Sprintf("%s: %v / %v", c.Metric, c.Weft, c.TCP)
}

// small is the size of the message rate and latency comparisons.
const small = 64

// sizes are those of the bandwidth comparisons.
var sizes = []int{small, 4 << 10, 64 << 10, maxSize}

// maxSize is the largest message, in octets.
const maxSize = 1 << 20

// A group is a set of comparisons whose workloads are sampled together.
type group []Comparison

// plan returns every comparison, in the order of the tables.
func plan() []group {
	crcs := []bool{true, false}
	ops := []Op{Write, Read, Send}

	var groups []group
	for _, size := range sizes {
		tcp := Workload{Transport: TCP, Shape: Stream, Op: Octets, Size: size}
		var g group
		for _, op := range ops {
			for _, crc := range crcs {
				weft := Workload{Transport: Weft, Shape: Stream, Op: op, Size: size, CRC: crc, Batch: true}
				g = append(g, Comparison{Bandwidth, weft, tcp})
			}
		}
		if size == small {
			gathered := tcp
			gathered.Batch = true
			for _, op := range ops {
				for _, crc := range crcs {
					weft := Workload{Transport: Weft, Shape: Stream, Op: op, Size: size, CRC: crc, Batch: true}
					single := weft
					single.Batch = false
					g = append(g,
						Comparison{MessageRate, weft, gathered},
						Comparison{MessageRate, weft, tcp},
						Comparison{MessageRate, single, tcp})
				}
			}
		}
		groups = append(groups, g)
	}
	for _, spin := range []bool{false, true} {
		if spin && !canSpin() {
			continue
		}
		tcp := Workload{Transport: TCP, Shape: PingPong, Op: Octets, Size: small, Spin: spin}
		var g group
		for _, op := range []Op{Send, Write} {
			for _, crc := range crcs {
				weft := Workload{Transport: Weft, Shape: PingPong, Op: op, Size: small, CRC: crc, Spin: spin}
				g = append(g, Comparison{Latency, weft, tcp})
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// filter keeps the comparisons of which keep approves and drops groups that
// become empty.
func filter(groups []group, keep func(Comparison) bool) []group {
	var kept []group
	for _, g := range groups {
		var k group
		for _, c := range g {
			if keep(c) {
				k = append(k, c)
			}
		}
		if len(k) > 0 {
			kept = append(kept, k)
		}
	}
	return kept
}

// workloads returns what g needs sampled in a round, in order. Baselines come
// twice, half the group apart: their mean stands in the middle of what is
// compared with them, and their difference says how restless the machine is.
// The order turns from round to round: what always came first would always
// meet the machine in the same state.
func (g group) workloads(round int) []Workload {
	var weft, tcp []Workload
	for _, c := range g {
		if !slices.Contains(weft, c.Weft) {
			weft = append(weft, c.Weft)
		}
		if !slices.Contains(tcp, c.TCP) {
			tcp = append(tcp, c.TCP)
		}
	}
	half := len(weft) / 2
	order := slices.Concat(tcp, weft[:half], tcp, weft[half:])
	turn := round % len(order)
	return slices.Concat(order[turn:], order[:turn])
}
