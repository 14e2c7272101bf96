// This file holds the performance targets: ratios inside one run.

package main

import "math"

// A Goal is the performance target of a workload of Weft.
type Goal struct {
	Of      Workload
	Against Workload // the zero Workload: the figure itself counts, in its unit
	Least   float64  // the target: the least ratio, or the most if lower is better
	Aim     float64  // a more ambitious target; 0 for none
	Metric  Metric   // what is compared; "" is what the workload is measured by
}

// goals returns all of them, in the order of the tables.
func goals() []Goal {
	var all []Goal
	all = append(all, streamGoals()...)
	all = append(all, latencyGoals()...)
	all = append(all, fabricGoals()...)
	all = append(all, scaleGoals()...)
	all = append(all, fileGoals()...)
	all = append(all, programGoals()...)
	return all
}

// streamGoals are against plain TCP in C, one write a message.
func streamGoals() []Goal {
	var all []Goal
	add := func(size int, batch, crc bool, least, aim float64, ops ...Op) {
		for _, op := range ops {
			all = append(all, Goal{Of: weftStream(op, size, batch, crc), Against: raw(Stream, size), Least: least, Aim: aim})
		}
	}
	for size := largest; size > maxSize; size /= 2 {
		add(size, true, false, 0.95, 1.05, Write, Read)
		add(size, true, true, 0.85, 0.95, Write, Read)
	}
	add(maxSize, true, false, 0.95, 1.05, Write, Read, Send)
	add(maxSize, true, true, 0.85, 0.95, Write, Read, Send)
	add(64<<10, true, false, 0.90, 1.00, Write, Read, Send)
	add(64<<10, true, true, 0.65, 0.85, Write, Read, Send)
	add(4<<10, true, true, 3, 4, Write, Read, Send)
	add(4<<10, false, true, 0.9, 1.0, Write, Read, Send)
	add(small, false, true, 0.9, 1.0, Write, Read, Send)
	add(small, true, true, 20, 30, Write, Send)
	add(small, true, true, 15, 25, Read)
	gathered := raw(Stream, small)
	gathered.Batch = true
	all = append(all,
		Goal{Of: weftStream(FetchAdd, 8, true, true), Against: raw(Stream, small), Least: 10, Aim: 20},
		Goal{Of: weftStream(Write, small, true, true), Against: gathered, Least: 0.2, Aim: 0.3},
		Goal{Of: weftStream(Write, small, true, true), Against: weftBefore(), Least: 0.6, Aim: 0.4, Metric: CPUTime})
	for _, path := range []Path{MTU1500, Delayed} {
		g := overPath(path)
		least, aim := 0.85, 0.95
		if path == Delayed {
			least, aim = 0.95, 1.0
		}
		for _, w := range g.Others {
			if w.CRC {
				all = append(all, Goal{Of: w, Against: g.Baseline, Least: least, Aim: aim})
			}
		}
	}
	return all
}

// latencyGoals are against plain TCP in C that waits in the same way.
func latencyGoals() []Goal {
	poll, event, free, atomic := polling().Baseline, eventDriven().Baseline, unpinned().Baseline, atomics().Baseline
	crc := func(w Workload) Workload { w.CRC = true; return w }
	return []Goal{
		{Of: crc(poll.with(Weft, Write)), Against: poll, Least: 1.10, Aim: 1.05},
		{Of: crc(event.with(Weft, Send)), Against: event, Least: 1.6, Aim: 1.3},
		{Of: crc(free.with(Weft, Send)), Against: free, Least: 1.4, Aim: 1.2},
		{Of: crc(atomic.with(Weft, FetchAdd)), Against: atomic, Least: 1.15, Aim: 1.05},
	}
}

// fabricGoals are against libfabric's tcp provider, which has no CRC: each
// workload that both can do.
func fabricGoals() []Goal {
	var all []Goal
	for _, g := range plan() {
		for _, w := range g.Others {
			if w.Peer != Weft || w.CRC {
				continue
			}
			twin := w
			twin.Peer, twin.Batch = Fabric, false
			for _, f := range g.Others {
				if f == twin {
					least := 1.0
					if w.Size == maxSize {
						least = 0.9
					}
					all = append(all, Goal{Of: w, Against: f, Least: least})
				}
			}
		}
	}
	return all
}

// scaleGoals are of more connections: against as many of TCP, and against Weft itself, for
// what they bring and cost.
func scaleGoals() []Goal {
	one := weftStream(Write, maxSize, true, false)
	two := one
	two.Connections = 2
	all := []Goal{{Of: two, Against: one, Least: 1.5, Aim: 1.8}}
	for _, n := range []int{2, 4} {
		tcp := raw(Stream, maxSize)
		tcp.Connections = n
		all = append(all, Goal{Of: tcp.with(Weft, Write), Against: tcp, Least: 0.85, Aim: 0.95})
	}
	made := connects().Baseline
	connect := made.with(Weft, Send)
	connect.CRC = true
	all = append(all, Goal{Of: connect, Against: made, Least: 0.4, Aim: 0.6})
	turns := atOneCQ(eventDriven().Baseline)
	single := turns
	single.Connections = 0
	all = append(all, Goal{Of: turns, Against: single, Least: 1.5, Aim: 1.2})
	crowd := weftCrowd()
	alone := crowd
	alone.Connections = 0
	all = append(all, Goal{Of: crowd, Against: alone, Least: 0.9, Aim: 1.0})
	loop := looping(polling().Baseline)
	spinning := loop
	spinning.Loop = false
	all = append(all, Goal{Of: loop, Against: spinning, Least: 1.2, Aim: 1.05})
	many := weftMany()
	all = append(all,
		Goal{Of: many, Against: weftStream(Send, small, true, true), Least: 0.6, Aim: 0.8},
		Goal{Of: many, Least: 20, Aim: 5, Metric: LongestWait})
	for _, g := range []group{polling(), eventDriven()} {
		among := amongIdle(g.Baseline)
		by := among
		by.Idle = 0
		all = append(all, Goal{Of: among, Against: by, Least: 1.1, Aim: 1.0})
	}
	regions := registrations()
	return append(all,
		Goal{Of: footprint().Others[0], Least: 40 << 10, Aim: 16 << 10},
		Goal{Of: regions.Others[0], Against: regions.Baseline, Least: 10},
		Goal{Of: regions.Others[1], Against: regions.Others[0], Least: 1.2})
}

// fileGoals are of files over RDMA: against the same server and client over TCP, and
// against another server.
func fileGoals() []Goal {
	var all []Goal
	for _, op := range []Op{Read, Write} {
		tcp := files(FileBandwidth, op, maxSize, 4).Baseline.with(WeftTCP, op)
		rdma := tcp.with(WeftRDMA, op)
		all = append(all,
			Goal{Of: rdma, Against: tcp, Least: 1.25, Aim: 1.5},
			Goal{Of: rdma, Against: tcp, Least: 0.8, Aim: 0.6, Metric: CPUTime})
	}
	other := files(FileRate, Read, 4<<10, 16).Baseline
	rdma := other.with(WeftRDMA, Read)
	rdma.CRC = true
	return append(all, Goal{Of: rdma, Against: other, Least: 4, Aim: 6})
}

// programGoals are of programs under weft run against plain TCP in C.
func programGoals() []Goal {
	var all []Goal
	for _, size := range []int{maxSize, gatherSize} {
		for _, op := range []Op{Write, Read} {
			w := raw(Stream, size).with(Perftest, op)
			all = append(all, Goal{Of: w, Against: raw(Stream, size), Least: 0.9})
			w.CRC = true
			all = append(all, Goal{Of: w, Against: raw(Stream, size), Least: 0.8})
		}
	}
	poll, event := polling().Baseline, eventDriven().Baseline
	for _, op := range []Op{Write, Send} {
		all = append(all, Goal{Of: poll.with(Perftest, op), Against: poll, Least: 1.3})
	}
	return append(all, Goal{Of: event.with(Perftest, Send), Against: event, Least: 1.5})
}

// A Verdict says whether a figure meets its target.
type Verdict string

const (
	AimReached Verdict = "aim reached"
	Reached    Verdict = "reached"
	Missed     Verdict = "missed"
)

// judge compares a figure with the target. Short is what is missing, as a share of the
// target: 0 unless it is missed.
func (g Goal) judge(figure float64, higherIsBetter bool) (v Verdict, short float64) {
	reaches := func(what float64) bool {
		if higherIsBetter {
			return figure >= what
		}
		return figure <= what
	}
	switch {
	case g.Aim != 0 && reaches(g.Aim):
		return AimReached, 0
	case reaches(g.Least):
		return Reached, 0
	}
	return Missed, math.Abs(figure-g.Least) / g.Least
}
