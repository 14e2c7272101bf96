// This file holds the performance targets: ratios inside one run.

package main

import "math"

// A Goal is the performance target of a workload of Weft.
type Goal struct {
	Of      Workload
	Against Workload // the zero Workload: the figure itself counts, in its unit
	Least   float64  // the target: the least ratio, or the most if lower is better
	Aim     float64  // a more ambitious target; 0 for none
}

// goals returns all of them, in the order of the tables.
func goals() []Goal {
	var all []Goal
	all = append(all, streamGoals()...)
	all = append(all, latencyGoals()...)
	all = append(all, fabricGoals()...)
	all = append(all, scaleGoals()...)
	all = append(all, programGoals()...)
	return all
}

// streamGoals are against plain TCP in C, one write a message.
func streamGoals() []Goal {
	var all []Goal
	add := func(size int, batch, crc bool, least, aim float64, ops ...Op) {
		for _, op := range ops {
			all = append(all, Goal{weftStream(op, size, batch, crc), raw(Stream, size), least, aim})
		}
	}
	add(maxSize, true, false, 0.85, 0.95, Write, Read, Send)
	add(maxSize, true, true, 0.60, 0.80, Write, Read, Send)
	add(64<<10, true, false, 0.90, 1.00, Write, Read, Send)
	add(64<<10, true, true, 0.65, 0.85, Write, Read, Send)
	add(4<<10, true, true, 3, 4, Write, Read, Send)
	add(4<<10, false, true, 0.9, 1.0, Write, Read, Send)
	add(small, false, true, 0.9, 1.0, Write, Read, Send)
	add(small, true, true, 20, 30, Write, Send)
	add(small, true, true, 15, 25, Read)
	return append(all, Goal{weftStream(FetchAdd, 8, true, true), raw(Stream, small), 10, 20})
}

// latencyGoals are against plain TCP in C that waits in the same way.
func latencyGoals() []Goal {
	poll, event, atomic := polling().Baseline, eventDriven().Baseline, atomics().Baseline
	crc := func(w Workload) Workload { w.CRC = true; return w }
	return []Goal{
		{crc(poll.with(Weft, Write)), poll, 1.10, 1.05},
		{crc(event.with(Weft, Send)), event, 1.6, 1.3},
		{crc(atomic.with(Weft, FetchAdd)), atomic, 1.15, 1.05},
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
	all := []Goal{{two, one, 1.5, 1.8}}
	for _, n := range []int{2, 4} {
		tcp := raw(Stream, maxSize)
		tcp.Connections = n
		all = append(all, Goal{tcp.with(Weft, Write), tcp, 0.85, 0.95})
	}
	made := connects().Baseline
	connect := made.with(Weft, Send)
	connect.CRC = true
	all = append(all, Goal{connect, made, 0.4, 0.6})
	turns := atOneCQ(eventDriven().Baseline)
	single := turns
	single.Connections = 0
	all = append(all, Goal{turns, single, 1.5, 1.2})
	crowd := weftCrowd()
	alone := crowd
	alone.Connections = 0
	all = append(all, Goal{crowd, alone, 0.9, 1.0})
	for _, g := range []group{polling(), eventDriven()} {
		among := amongIdle(g.Baseline)
		by := among
		by.Idle = 0
		all = append(all, Goal{among, by, 1.1, 1.0})
	}
	return append(all, Goal{Of: footprint().Others[0], Least: 40 << 10, Aim: 16 << 10})
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
