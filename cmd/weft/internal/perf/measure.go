package perf

import (
	"context"
	"fmt"
	"math"
	"time"
)

// A group is one operation and size: what is measured side by side.
type group struct {
	op     Op
	size   int
	tcp    *series
	rdma   map[bool]*series // by CRC
	meters []*meter
}

// A meter takes one figure of a group over and over.
type meter struct {
	run run // N is the number of messages that fill a window
	to  *series
}

func newGroup(op Op, size int, crcs []bool) *group {
	g := &group{op: op, size: size, tcp: new(series), rdma: make(map[bool]*series)}
	add := func(k kind, crc bool, to *series) {
		g.meters = append(g.meters, &meter{run{Kind: k, Op: op, Size: size, CRC: crc, Slots: 1}, to})
	}
	for _, crc := range crcs {
		g.rdma[crc] = new(series)
	}
	add(stream, false, g.tcp)
	for _, crc := range crcs {
		add(bandwidth, crc, g.rdma[crc])
	}
	add(echo, false, g.tcp)
	for _, crc := range crcs {
		add(latency, crc, g.rdma[crc])
	}
	return g
}

// Bounds of one run's length in messages of all connections: what its round
// trips are kept in, and what keeps it from taking ever longer on an idle clock.
const (
	maxTrips    = 1 << 18
	maxMessages = 1 << 24
)

// most is the bound of each of so many connections.
func (m *meter) most(connections int) int {
	if m.run.Kind == latency || m.run.Kind == echo {
		return maxTrips / connections
	}
	return maxMessages / connections
}

// measure verifies every operation, finds out how many messages fill a
// window, and then measures round by round.
func (d *driver) measure(ctx context.Context) (*Report, error) {
	groups := d.cfg.groups()
	meters := 0
	for _, g := range groups {
		meters += len(g.meters)
	}
	window := d.cfg.window(meters)
	steps, step := len(groups)+meters*(d.cfg.Rounds+1), 0
	progress := func() {
		step++
		if d.cfg.Progress != nil {
			d.cfg.Progress(step, steps)
		}
	}
	start := time.Now()
	for _, g := range groups {
		if err := d.verify(ctx, g); err != nil {
			return nil, fmt.Errorf("verifying %w", err)
		}
		progress()
	}
	for _, g := range groups {
		for _, m := range g.meters {
			if err := d.calibrate(ctx, m, window); err != nil {
				return nil, err
			}
			progress()
		}
	}
	rounds := 0
	for rounds < d.cfg.Rounds {
		began := time.Now()
		for _, g := range groups {
			for i := range g.meters {
				// To and fro, so that none is always the first.
				if rounds%2 == 1 {
					i = len(g.meters) - 1 - i
				}
				if err := d.take(ctx, g.meters[i], window); err != nil {
					return nil, err
				}
				progress()
			}
		}
		// A machine that is busier than it was gets fewer rounds, not more time.
		rounds++
		if time.Since(start)+time.Since(began) > d.cfg.Duration*5/4 {
			break
		}
	}
	return d.report(groups, rounds, time.Since(start)), nil
}

// maxWindow leaves a run time to take several times as long as the one before
// it foretold, before the peer ends it.
const maxWindow = runLimit / 4

// window is how long each of so many meters runs in a round. Finding out how
// many messages fill it takes about as long as a round.
func (c *Config) window(meters int) time.Duration {
	return min(c.Duration/time.Duration(max(meters*(c.Rounds+1), 1)), maxWindow)
}

// verify moves messages between slots of their own, which both ends compare.
func (d *driver) verify(ctx context.Context, g *group) error {
	for _, crc := range d.cfg.CRC {
		slots := slotsFor(g.size, d.cfg.Connections)
		r := run{Kind: bandwidth, Op: g.op, Size: g.size, CRC: crc, N: slots, Slots: slots}
		if _, err := d.do(ctx, &r); err != nil {
			return err
		}
		g.rdma[crc].verified = slots * d.cfg.Connections
	}
	return nil
}

// calibrate sets m's number of messages so that a run takes about window.
func (d *driver) calibrate(ctx context.Context, m *meter, window time.Duration) error {
	for n := 1; ; {
		m.run.N = n
		elapsed, err := d.do(ctx, &m.run)
		if err != nil {
			return err
		}
		most := m.most(d.cfg.Connections)
		m.fit(elapsed, window, most)
		if elapsed > window/4 || n == most {
			return nil
		}
		n = min(m.run.N, n*8)
	}
}

// fit sets m's number of messages so that they fill window, as the last run,
// which took elapsed, tells, up to most.
func (m *meter) fit(elapsed, window time.Duration, most int) {
	n := float64(m.run.N) * float64(window) / float64(max(elapsed, 1))
	m.run.N = max(int(math.Round(min(n, float64(most)))), 1)
}

// take measures once.
func (d *driver) take(ctx context.Context, m *meter, window time.Duration) error {
	elapsed, err := d.do(ctx, &m.run)
	if err != nil {
		return err
	}
	messages := m.run.N * d.cfg.Connections
	switch m.run.Kind {
	case bandwidth, stream:
		m.to.addTransfer(messages, m.run.Size, elapsed)
	default:
		m.to.addLatency(d.trips[:messages], m.run.Op.tripParts())
	}
	m.fit(elapsed, window, m.most(d.cfg.Connections))
	return nil
}

// tripParts is by how much a round trip is divided to be op's latency.
func (op Op) tripParts() int {
	if op.fetches() {
		return 1
	}
	return 2
}

// report sums up what the groups have collected.
func (d *driver) report(groups []*group, rounds int, took time.Duration) *Report {
	rep := newReport(d.cfg, d.system, rounds, took)
	for _, g := range groups {
		for _, crc := range d.cfg.CRC {
			rep.Results = append(rep.Results, newResult(d.cfg, g, crc))
		}
	}
	return rep
}
