// The plan: which workloads are measured, what each is set against, and the
// order in which they are sampled, so that comparisons are between neighbours
// in time.

package main

import "slices"

// A group is a set of workloads that are sampled together and set against one
// baseline: plain TCP that moves the same messages.
type group struct {
	Metric   Metric
	Baseline Workload // the zero Workload where there is nothing to compare with
	Others   []Workload
}

const (
	small     = 64       // octets, of message rates and latencies
	maxSize   = 1 << 20  // the largest message of most rows, in octets
	largest   = 64 << 20 // the largest of any, in octets
	idleCount = 1000     // connections that do nothing, where there are some
	manyCount = 1000     // connections that all are active
	blockSize = 1 << 30  // the largest memory that is registered, in octets
)

// sizes are those of the streams, in octets.
var sizes = []int{small, 4 << 10, 64 << 10, maxSize}

// plan returns everything, in the order of the tables.
func plan() []group {
	var groups []group
	for size := largest; size > maxSize; size /= 2 {
		groups = append(groups, largeStreams(size))
	}
	for _, size := range slices.Backward(sizes) {
		groups = append(groups, streams(size))
	}
	return append(groups, polling(), eventDriven(), unpinned(), atomics(), connects(),
		overPath(MTU1500), overPath(Delayed), footprint(), registrations(),
		files(FileBandwidth, Read, maxSize, 4), files(FileBandwidth, Write, maxSize, 4), files(FileRate, Read, 4<<10, 16))
}

// raw is plain TCP in C, that everything is set against.
func raw(shape Shape, size int) Workload {
	return Workload{Peer: TCPC, Shape: shape, Op: Octets, Size: size}
}

// with returns w with a peer and an operation of its own.
func (w Workload) with(p Peer, op Op) Workload {
	w.Peer, w.Op = p, op
	return w
}

// crcs returns w with CRC and without.
func crcs(w Workload) []Workload {
	on := w
	on.CRC = true
	return []Workload{on, w}
}

// weftStream is a stream over Weft. Messages that fill a list by themselves are
// not called batched.
func weftStream(op Op, size int, batch, crc bool) Workload {
	return Workload{Peer: Weft, Shape: Stream, Op: op, Size: size, CRC: crc, Batch: batch && size < windowSize}
}

// connects are connections made and ended, one after the other.
func connects() group {
	base := raw(Connect, small)
	return group{Metric: ConnectRate, Baseline: base, Others: crcs(base.with(Weft, Send))}
}

// crowdSize is the size of the messages of weftCrowd, in octets.
const crowdSize = 4 << 10

// weftCrowd is a stream of Sends over as many connections as there may be.
func weftCrowd() Workload {
	w := weftStream(Send, crowdSize, true, true)
	w.Connections = maxConnections
	return w
}

// weftMany is a stream of Sends of so few octets over more connections than have a
// goroutine or memory of their own.
func weftMany() Workload {
	w := weftStream(Send, small, true, true)
	w.Connections = manyCount
	return w
}

// weftBefore is the stream of Writes whose cost in processor time is set against an older
// commit's.
func weftBefore() Workload { return weftStream(Write, small, true, true).with(Before, Write) }

// largeStreams are streams of messages of more than maxSize.
func largeStreams(size int) group {
	g := group{Metric: Bandwidth, Baseline: raw(Stream, size)}
	for _, op := range []Op{Write, Read} {
		g.Others = append(g.Others, crcs(weftStream(op, size, true, false))...)
	}
	return g
}

// overPath are streams between ends that are apart.
func overPath(path Path) group {
	base := raw(Stream, maxSize)
	base.Path = path
	g := group{Metric: Bandwidth, Baseline: base}
	for _, op := range []Op{Write, Read} {
		g.Others = append(g.Others, crcs(base.with(Weft, op))...)
	}
	return g
}

// registrations are of memory: small and large.
func registrations() group {
	base := Workload{Peer: GoMap, Shape: Register, Op: None, Size: 4 << 10}
	little := base.with(Weft, None)
	big := little
	big.Size = blockSize
	return group{Metric: RegionTime, Baseline: base, Others: []Workload{little, big}}
}

// streams are the streams of messages of size octets.
func streams(size int) group {
	base := raw(Stream, size)
	g := group{Metric: Bandwidth, Baseline: base}
	if size == small {
		g.Metric = MessageRate
	}
	for _, op := range []Op{Write, Read, Send} {
		g.Others = append(g.Others, crcs(weftStream(op, size, true, false))...)
		if size < gatherSize {
			g.Others = append(g.Others, crcs(weftStream(op, size, false, false))...)
		}
	}
	for _, op := range []Op{Write, Read, Send} {
		g.Others = append(g.Others, base.with(Fabric, op))
	}
	g.Others = append(g.Others, base.with(GRPC, Message), base.with(TCPGo, Octets))
	if size >= gatherSize {
		for _, op := range []Op{Write, Read, Send} {
			g.Others = append(g.Others, crcs(base.with(Perftest, op))...)
		}
	}
	if size < gatherSize {
		gathered := base
		gathered.Batch = true
		g.Others = append(g.Others, gathered, gathered.with(TCPGo, Octets))
	}
	if size == small {
		g.Others = append(g.Others, crcs(weftStream(FetchAdd, 8, true, false))...)
		g.Others = append(g.Others, weftMany(), weftBefore())
	}
	if size >= gatherSize {
		g.Others = append(g.Others, encrypted(size)...)
	}
	switch size {
	case maxSize:
		for _, n := range []int{2, 4} {
			several := base
			several.Connections = n
			g.Others = append(g.Others, several.with(Weft, Write), several)
		}
	case crowdSize:
		g.Others = append(g.Others, weftCrowd())
	}
	return g
}

// encrypted are streams over TLS: Weft's beside those of a Go program.
func encrypted(size int) []Workload {
	list := []Workload{{Peer: TCPGo, Shape: Stream, Op: Octets, Size: size, TLS: true}}
	for _, op := range []Op{Write, Read, Send} {
		for _, w := range crcs(weftStream(op, size, true, false)) {
			w.TLS = true
			list = append(list, w)
		}
	}
	return list
}

// polling are the ping-pongs whose ends poll.
func polling() group {
	base := raw(PingPong, small)
	base.Polling = true
	g := group{Metric: HalfTrip, Baseline: base}
	for _, op := range []Op{Write, Send} {
		g.Others = append(g.Others, crcs(base.with(Weft, op))...)
	}
	g.Others = append(g.Others, looping(base), amongIdle(base), base.with(Fabric, Write), base.with(Fabric, Send))
	if canSpin() {
		g.Others = append(g.Others, base.with(TCPGo, Octets))
	}
	for _, op := range []Op{Write, Send} {
		g.Others = append(g.Others, crcs(base.with(Perftest, op))...)
	}
	return g
}

// eventDriven are the ping-pongs whose ends wait for an event.
func eventDriven() group {
	base := raw(PingPong, small)
	g := group{Metric: HalfTrip, Baseline: base}
	for _, op := range []Op{Send, Write} {
		g.Others = append(g.Others, crcs(base.with(Weft, op))...)
	}
	g.Others = append(g.Others, amongIdle(base), base.with(Fabric, Send),
		base.with(GRPC, Message), base.with(GRPC, Call), base.with(TCPGo, Octets), atOneCQ(base))
	g.Others = append(g.Others, crcs(base.with(Perftest, Send))...)
	return g
}

// atOneCQ is a ping-pong of Sends like base, over several connections in turn, each end of
// which is one consumer at one completion queue.
func atOneCQ(base Workload) Workload {
	w := base.with(Weft, Send)
	w.CRC, w.Connections = true, 16
	return w
}

// unpinned are ping-pongs whose ends wait for an event, on whatever processor. It is
// there that a consumer gains by receiving in its own goroutine.
func unpinned() group {
	base := raw(PingPong, small)
	base.Unpinned = true
	g := group{Metric: HalfTrip, Baseline: base}
	for _, op := range []Op{Send, Write} {
		g.Others = append(g.Others, crcs(base.with(Weft, op))...)
	}
	g.Others = append(g.Others, base.with(TCPGo, Octets))
	g.Others = append(g.Others, crcs(base.with(Perftest, Send))...)
	return g
}

// looping is a ping-pong of Sends like base, whose ends poll without Spin.
func looping(base Workload) Workload {
	w := base.with(Weft, Send)
	w.CRC, w.Loop = true, true
	return w
}

// amongIdle is a ping-pong of Sends like base, beside connections that do
// nothing.
func amongIdle(base Workload) Workload {
	w := base.with(Weft, Send)
	w.CRC, w.Idle = true, idleCount
	return w
}

// atomics are the operations that fetch 8 octets and change them.
func atomics() group {
	base := raw(PingPong, 8)
	base.Polling = true
	return group{Metric: RoundTrip, Baseline: base, Others: crcs(base.with(Weft, FetchAdd))}
}

// footprint is what a connection costs that does nothing.
func footprint() group {
	return group{Metric: Memory, Others: []Workload{
		{Peer: Weft, Shape: Footprint, Op: None, CRC: true, Idle: idleCount},
	}}
}

// files are the same reads or writes of a file from each server, so many at a
// time. What others do there is go-nfs over TCP.
func files(m Metric, op Op, size, users int) group {
	base := Workload{Peer: GoNFS, Shape: File, Op: op, Size: size, Connections: users}
	g := group{Metric: m, Baseline: base, Others: crcs(base.with(WeftRDMA, op))}
	g.Others = append(g.Others, base.with(WeftTCP, op))
	return g
}

// all returns the group's workloads, the baseline first.
func (g group) all() []Workload {
	if g.Baseline == (Workload{}) {
		return g.Others
	}
	return slices.Concat([]Workload{g.Baseline}, g.Others)
}

// quick says that w is part of a quick run, which leaves out what takes long to start and
// what no goal of Weft's own is about.
func (w Workload) quick() bool {
	switch w.Peer {
	case Perftest, Fabric, GRPC, Before:
		return false
	}
	return !w.TLS && (w.Size <= maxSize || w.Size == 8*maxSize || w.Size >= largest)
}

// filter keeps the workloads of which keep approves, with the baselines they
// are set against, and drops groups that become empty.
func filter(groups []group, keep func(Workload) bool) []group {
	var kept []group
	for _, g := range groups {
		others := g.Others
		g.Others = nil
		for _, w := range others {
			if keep(w) {
				g.Others = append(g.Others, w)
			}
		}
		if len(g.Others) > 0 || g.Baseline != (Workload{}) && keep(g.Baseline) {
			kept = append(kept, g)
		}
	}
	return kept
}

// without drops the workloads of peers that are not here. Where C is missing,
// plain TCP in Go takes its place as the baseline.
func without(groups []group, missing func(Peer) bool) []group {
	gone := func(w Workload) bool { return missing(w.Peer) || w.Path != Loopback && missing(Peer(w.Path)) }
	var left []group
	for _, g := range groups {
		g.Others = slices.DeleteFunc(slices.Clone(g.Others), gone)
		if g.Baseline != (Workload{}) && gone(g.Baseline) {
			twin := g.Baseline.with(TCPGo, Octets)
			g.Baseline = Workload{}
			if !gone(twin) && (!twin.Polling || canSpin()) {
				g.Baseline = twin
			}
			g.Others = slices.DeleteFunc(g.Others, func(w Workload) bool { return w == twin })
		}
		if len(g.all()) > 0 {
			left = append(left, g)
		}
	}
	return left
}

// order returns what g needs sampled in a round, in order. The baseline comes
// twice, half the group apart: the mean stands in the middle of what is
// compared with it, and the difference says how restless the machine is. The
// order turns from round to round: what always came first would always meet the
// machine in the same state.
func (g group) order(round int) []Workload {
	order := slices.Clone(g.Others)
	if g.Baseline != (Workload{}) {
		half := len(g.Others) / 2
		order = slices.Concat([]Workload{g.Baseline}, g.Others[:half], []Workload{g.Baseline}, g.Others[half:])
	}
	turn := round % len(order)
	return slices.Concat(order[turn:], order[:turn])
}
