// Results: a comparison with its figures.

package main

// A Result is a comparison and what came out.
type Result struct {
	Comparison
	WeftFigure, TCPFigure Summary // in the metric's unit
	Ratio                 Summary // Weft to TCP, taken inside each round
	Noise                 Summary // the baseline's second sample of a round to its first: 1 on a quiet machine
	WeftP99, TCPP99       float64 // ns, median over rounds; of Latency only
	WeftCPU, TCPCPU       float64 // ns of processor time a message, both ends, median over rounds
	Err                   error   // a workload failed; the figures mean nothing
}

// results works out every comparison of groups from the samples.
func results(groups []group, s *Samples) []Result {
	var all []Result
	for _, g := range groups {
		for _, c := range g {
			all = append(all, s.compare(c))
		}
	}
	return all
}

func (s *Samples) compare(c Comparison) Result {
	r := Result{Comparison: c}
	for _, w := range []Workload{c.TCP, c.Weft} {
		if err := s.Failed[w]; err != nil {
			r.Err = err
			return r
		}
	}
	figure := func(x Sample) float64 { return x.value(c.Metric, c.Weft.Size) }
	p99 := func(x Sample) float64 { return float64(x.P99.Nanoseconds()) }
	cpu := func(x Sample) float64 { return float64(x.CPU.Nanoseconds()) / float64(max(1, x.Total)) }

	weft, tcp := perRound(s.Of[c.Weft], figure), perRound(s.Of[c.TCP], figure)
	r.WeftFigure, r.TCPFigure = summarize(weft), summarize(tcp)
	r.Ratio = summarize(ratios(weft, tcp))
	r.Noise = summarize(againstItself(s.Of[c.TCP], figure))
	r.WeftCPU = summarize(perRound(s.Of[c.Weft], cpu)).Median
	r.TCPCPU = summarize(perRound(s.Of[c.TCP], cpu)).Median
	if c.Metric == Latency {
		r.WeftP99 = summarize(perRound(s.Of[c.Weft], p99)).Median
		r.TCPP99 = summarize(perRound(s.Of[c.TCP], p99)).Median
	}
	return r
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

// how says in a word how the messages were driven.
func (w Workload) how() string {
	switch {
	case w.Shape == PingPong && w.Spin:
		return "polling"
	case w.Shape == PingPong:
		return "parking"
	case w.Transport == TCP && w.Batch:
		return "gathered 64KiB"
	case w.Transport == TCP:
		return "one write each"
	case w.Batch:
		return "lists"
	}
	return "one post each"
}
