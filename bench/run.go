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
	p, err := startPeer(ctx)
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

	samples := newSamples()
	var seed uint64
	for round := range r.Rounds {
		order := r.order(round)
		for i, w := range order {
			if samples.Failed[w] != nil {
				continue
			}
			if r.Progress != nil {
				r.Progress(round, i, len(order), w)
			}
			seed++
			placement := place(w, allowed, r.Pin)
			job, profileName := r.job(w, round, seed, placement)
			s, err := repeated(func() (Sample, error) { return p.sample(ctx, e, job, placement.Initiator, profileName) })
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			if errors.Is(err, errBroken) {
				return nil, err
			}
			if err != nil {
				samples.Failed[w] = fmt.Errorf("%v, round %d: %w", w, round+1, err)
				continue
			}
			samples.add(w, round, s)
		}
	}
	return samples, nil
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
