// This file plans what is measured, and measures it round by round.

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

// A meter measures one figure of a group, round by round.
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

// most is the bound for each of so many connections.
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
	if d.cfg.Interval > 0 {
		d.cfg.Rounds = min(max(int(d.cfg.Duration/d.cfg.Interval)/max(meters, 1)-1, 1), maxRounds)
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
	d.began = start
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
				// Alternate the order, so that no meter is always the first.
				if rounds%2 == 1 {
					i = len(g.meters) - 1 - i
				}
				if err := d.runMeter(ctx, g.meters[i], window); err != nil {
					return nil, err
				}
				progress()
			}
		}
		// A machine that has become busier gets fewer rounds, not more time.
		rounds++
		if time.Since(start)+time.Since(began) > d.cfg.Duration*5/4 {
			break
		}
	}
	return d.report(groups, rounds, time.Since(start)), nil
}

// maxWindow lets a run take several times as long as the last one predicted, before the
// peer's limit ends it.
const maxWindow = runLimit / 4

// window is how long each of so many meters runs in a round. Calibration takes about as
// long as a round.
func (c *Config) window(meters int) time.Duration {
	return min(c.Duration/time.Duration(max(meters*(c.Rounds+1), 1)), maxWindow)
}

// verify moves messages, each with its own slot, and both ends compare the data.
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

// fit sets the number of messages that fill window, up to most, from the last run, which
// took elapsed.
func (m *meter) fit(elapsed, window time.Duration, most int) {
	n := float64(m.run.N) * float64(window) / float64(max(elapsed, 1))
	m.run.N = max(int(math.Round(min(n, float64(most)))), 1)
}

// runMeter measures one figure once.
func (d *driver) runMeter(ctx context.Context, m *meter, window time.Duration) error {
	elapsed, err := d.do(ctx, &m.run)
	if err != nil {
		return err
	}
	messages := m.run.N * d.cfg.Connections
	switch m.run.Kind {
	case bandwidth, stream:
		m.to.addTransfer(messages, m.run.Size, elapsed)
		m.to.at = append(m.to.at, time.Since(d.began).Seconds())
		d.observe(m)
	default:
		m.to.addLatency(d.trips[:messages], m.run.Op.tripParts())
	}
	m.fit(elapsed, window, m.most(d.cfg.Connections))
	return nil
}

// maxRounds is how many rounds an interval may lead to.
const maxRounds = 10000

// observe reports the bandwidth that m has measured last.
func (d *driver) observe(m *meter) {
	if d.cfg.Measured == nil {
		return
	}
	last := len(m.to.rate) - 1
	what := fmt.Sprintf("%s %s", m.run.Op, SizeString(m.run.Size))
	if m.run.Kind == stream {
		what += ", plain TCP"
	} else {
		what += ", CRC " + onOff(m.run.CRC)
	}
	d.cfg.Measured(what, Moment{Seconds: m.to.at[last], BytesPerSecond: m.to.rate[last]})
}

// tripParts is the divisor that makes the latency of op from a round trip.
func (op Op) tripParts() int {
	if op.fetches() {
		return 1
	}
	return 2
}

// report summarizes the series of all groups.
func (d *driver) report(groups []*group, rounds int, took time.Duration) *Report {
	rep := newReport(d.cfg, d.system, rounds, took)
	for _, g := range groups {
		for _, crc := range d.cfg.CRC {
			rep.Results = append(rep.Results, newResult(d.cfg, g, crc))
		}
	}
	return rep
}
