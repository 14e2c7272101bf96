// Results: each workload's figure and its ratio to the baseline, each goal's
// ratio, worked out from the samples.

package main

import (
	"cmp"
	"time"
)

// A Result is one workload and what came out.
type Result struct {
	Workload Workload
	Metric   Metric
	Baseline Workload // the zero Workload where there is none
	Figure   Summary  // in the metric's unit
	Ratio    Summary  // to the baseline, taken inside each round
	Noise    Summary  // of a baseline: a round's second sample to its first, 1 on a quiet machine
	Trips    [4]time.Duration
	CPU      float64 // ns of processor time a message, both ends, median over rounds
	Err      error   // it failed; the figures mean nothing
}

// results works out every workload of groups from the samples.
func results(groups []group, s *Samples) []Result {
	var all []Result
	for _, g := range groups {
		for _, w := range g.all() {
			all = append(all, s.result(g, w))
		}
	}
	return all
}

func (s *Samples) result(g group, w Workload) Result {
	r := Result{Workload: w, Metric: g.Metric, Baseline: g.Baseline}
	if r.Err = s.Failed[w]; r.Err != nil {
		return r
	}
	if s.Failed[g.Baseline] != nil {
		r.Baseline = Workload{}
	}
	cpu := func(x Sample) float64 { return float64(x.CPU.Nanoseconds()) / float64(max(1, x.Total)) }
	figures := s.figures(g.Metric, w)
	r.Figure = summarize(figures)
	if r.Baseline != (Workload{}) {
		r.Ratio = summarize(ratios(figures, s.figures(g.Metric, g.Baseline)))
	}
	if w == g.Baseline {
		r.Noise = summarize(againstItself(s.Of[w], func(x Sample) float64 { return g.Metric.of(x, w.Size) }))
	}
	for i := range r.Trips {
		trip := func(x Sample) float64 { return float64(x.Trips[i]) }
		r.Trips[i] = time.Duration(summarize(perRound(s.Of[w], trip)).Median)
	}
	r.CPU = summarize(perRound(s.Of[w], cpu)).Median
	return r
}

// figures are w's, one a round.
func (s *Samples) figures(m Metric, w Workload) []float64 {
	return perRound(s.Of[w], func(x Sample) float64 { return m.of(x, w.Size) })
}

// An Attempt is a goal and what came out.
type Attempt struct {
	Goal
	Metric  Metric
	Figure  Summary // ratio inside each round; or the figure itself
	Verdict Verdict
	Short   float64 // what is missing of the goal, as a share of it
}

// attempts judges the goals whose workloads were measured.
func attempts(groups []group, s *Samples) []Attempt {
	metrics := map[Workload]Metric{}
	for _, g := range groups {
		for _, w := range g.all() {
			if s.Failed[w] == nil {
				metrics[w] = g.Metric
			}
		}
	}
	var all []Attempt
	for _, g := range goals() {
		m, of := metrics[g.Of]
		_, against := metrics[g.Against]
		if !of || g.Against != (Workload{}) && !against {
			continue
		}
		m = cmp.Or(g.Metric, m)
		a := Attempt{Goal: g, Metric: m}
		figures := s.figures(m, g.Of)
		if g.Against != (Workload{}) {
			figures = ratios(figures, s.figures(m, g.Against))
		}
		a.Figure = summarize(figures)
		a.Verdict, a.Short = g.judge(a.Figure.Median, m.higherIsBetter())
		all = append(all, a)
	}
	return all
}

// perRound is the mean of f over each round's samples.
func perRound(rounds [][]Sample, f func(Sample) float64) []float64 {
	v := make([]float64, len(rounds))
	for i, round := range rounds {
		for _, x := range round {
			v[i] += f(x) / float64(len(round))
		}
	}
	return v
}

// againstItself is f of each round's last sample to f of its first.
func againstItself(rounds [][]Sample, f func(Sample) float64) []float64 {
	v := make([]float64, len(rounds))
	for i, round := range rounds {
		v[i] = f(round[len(round)-1]) / f(round[0])
	}
	return v
}
