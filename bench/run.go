// The run: rounds, in each of which every workload is sampled once.

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"
)

// A Run is how to measure. Its fields are set before it starts.
type Run struct {
	Groups     []group
	Rounds     int
	Warmup     time.Duration // of each sample
	Sample     time.Duration // of each sample, after the warm-up
	Limit      time.Duration // after which no round begins or is repeated; 0 is none
	Congestion string        // "" leaves the system's
	Pin        bool          // place the ends on processors
	Peers      *Peers        // which there are
	ProfileDir string        // for CPU profiles of every Weft sample's two ends; "" for none

	// Progress, if not nil, is called before each sample.
	Progress func(round, sample, samples int, w Workload)
}

// Samples are the results of a run.
type Samples struct {
	// Of holds, for each workload and each round, the round's samples.
	Of map[Workload][][]Sample
	// Failed holds the first failure of a workload that is not repeated; it is not sampled again.
	Failed map[Workload]error

	Repeated int // rounds of groups that were taken again, for a baseline that was not quiet
	Restless int // of the rounds that count, those whose baseline is not quiet all the same
}

func newSamples() *Samples {
	return &Samples{Of: map[Workload][][]Sample{}, Failed: map[Workload]error{}}
}

// add files a sample of the given round, which is the last one or a new one.
func (s *Samples) add(w Workload, round int, x Sample) {
	for len(s.Of[w]) <= round {
		s.Of[w] = append(s.Of[w], nil)
	}
	s.Of[w][round] = append(s.Of[w][round], x)
}

// forget drops a round of a group.
func (s *Samples) forget(g group, round int) {
	for _, w := range g.all() {
		if round < len(s.Of[w]) {
			s.Of[w][round] = nil
		}
	}
}

// sampleGrace is added to a sample's own time before it is given up.
const sampleGrace = 20 * time.Second

// errNoClock is the failure of a sample whose program could not tell the time.
var errNoClock = errors.New("the program's clock gave no figures")

// mostTries is how often a sample is taken at most.
const mostTries = 4

// repeated takes a sample, and takes it again while it fails by errNoClock.
func repeated(take func() (Sample, error)) (s Sample, err error) {
	for range mostTries {
		if s, err = take(); !errors.Is(err, errNoClock) {
			break
		}
	}
	return s, err
}

// Do measures on the processors allowed. The error is for what makes going on impossible; what goes wrong
// with one workload is in Samples.Failed.
func (r *Run) Do(ctx context.Context, allowed []int) (_ *Samples, err error) {
	p, err := startPeer(ctx, targetRole, nil)
	if err != nil {
		return nil, err
	}
	defer func() {
		cerr := p.close()
		if err != nil {
			err = p.explain(err)
		} else {
			err = cerr
		}
	}()
	e, err := newEnd()
	if err != nil {
		return nil, err
	}
	defer e.close()

	t := &taking{Run: r, peer: p, end: e, allowed: allowed, samples: newSamples()}
	began := time.Now()
	for round := range r.Rounds {
		if took := time.Since(began); round > 0 && r.Limit > 0 && took+took/time.Duration(round) > r.Limit {
			r.Rounds = round // a busy machine gets fewer rounds, not more time
			break
		}
		if err := t.take(ctx, round, r.order(round)); err != nil {
			return nil, err
		}
	}
	return t.samples, t.repeat(ctx, began.Add(r.Limit))
}

// A taking takes the samples of a run.
type taking struct {
	*Run
	peer    *peer
	end     *end
	allowed []int
	samples *Samples
	seed    uint64
}

// take samples the workloads of a round, or of one group in it, in order.
func (t *taking) take(ctx context.Context, round int, order []Workload) error {
	for i, w := range order {
		if t.samples.Failed[w] != nil {
			continue
		}
		if t.Progress != nil {
			t.Progress(round, i, len(order), w)
		}
		s, err := t.sample(ctx, round, w)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, errBroken) {
			return err
		}
		if err != nil {
			t.samples.Failed[w] = fmt.Errorf("%v, round %d: %w", w, round+1, err)
			continue
		}
		t.samples.add(w, round, s)
	}
	return nil
}

// sample takes one.
func (t *taking) sample(ctx context.Context, round int, w Workload) (Sample, error) {
	t.seed++
	placement := place(w, t.allowed, t.Pin)
	job, profileName := t.job(w, round, t.seed, placement)
	return repeated(func() (Sample, error) {
		if w.Path == MTU1500 {
			return t.Peers.wire.sample(job, placement.Initiator)
		}
		return t.peer.sample(ctx, t.end, job, placement.Initiator, profileName)
	})
}

// A baseline within these shares of its own median is quiet.
const (
	quietLeast = 0.8
	quietMost  = 1.25
)

// restless returns the rounds of g in which the baseline was not quiet.
func (s *Samples) restless(g group) (rounds []int) {
	if g.Baseline == (Workload{}) || s.Failed[g.Baseline] != nil {
		return nil
	}
	figures := s.figures(g.Metric, g.Baseline)
	middle := summarize(figures).Median
	for round, f := range figures {
		if f < quietLeast*middle || f > quietMost*middle {
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// mostRepeats is how often a round is repeated at most.
const mostRepeats = 3

// repeat takes the rounds of each group again in which the baseline was not quiet, until the
// time is up.
func (t *taking) repeat(ctx context.Context, until time.Time) error {
	for range mostRepeats {
		for _, g := range t.Groups {
			for _, round := range t.samples.restless(g) {
				if !time.Now().Before(until) {
					break
				}
				t.samples.forget(g, round)
				if err := t.take(ctx, round, g.order(round)); err != nil {
					return err
				}
				t.samples.Repeated++
			}
		}
	}
	for _, g := range t.Groups {
		t.samples.Restless += len(t.samples.restless(g))
	}
	return nil
}

// order returns the workloads of a round, in their order.
func (r *Run) order(round int) (all []Workload) {
	for _, g := range r.Groups {
		all = append(all, g.order(round)...)
	}
	return all
}

// job describes one sample to the second process. profile is the file for the profile of
// this one, "" for none.
func (r *Run) job(w Workload, round int, seed uint64, at Placement) (job Job, profile string) {
	job = Job{
		Workload: w, Warmup: r.Warmup, Sample: r.Sample, Limit: r.Warmup + r.Sample + sampleGrace,
		Congestion: r.Congestion, Seed: seed, Program: r.Peers.programs[w.Peer], Dir: r.Peers.served,
		Library: r.Peers.libibverbs, CPUs: at.Target, Shared: at.shared(),
	}
	if r.ProfileDir != "" && w.Peer == Weft {
		base := filepath.Join(r.ProfileDir, fmt.Sprintf("%s.%d", w.fileName(), round))
		profile, job.Profile = base+".initiator.pprof", base+".target.pprof"
	}
	return job, profile
}
