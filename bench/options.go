// The command line.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"time"
)

// options are what the command line says.
type options struct {
	run      Run
	json     string // file to write; "-" is standard output
	from     string // file with results that are there already; "" measures
	plots    string // directory for pictures
	page     string // page to put the figures into
	before   string // commit that processor time is compared with
	showPlan bool
}

// parse reads the command line; asked for help, it writes it and returns
// flag.ErrHelp.
func parse(args []string, help io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	quick := fs.Bool("quick", false, "within two minutes: 3 rounds of short samples, without programs under weft run, libfabric, gRPC, TLS and an older commit")
	rounds := fs.Int("rounds", 0, "how many times each sample is taken (default 15, with --quick 3)")
	sample := fs.Duration("sample", 0, "length of one sample (default 200ms, with --quick 40ms)")
	only := fs.String("only", "", "measure only what matches this regular `expression`, e.g. 'weft write.*64KiB', and its baselines (see --list)")
	congestion := fs.String("congestion", defaultCongestionFlag(), "congestion control of all sockets; system leaves the default")
	noPin := fs.Bool("no-pin", false, "leave the placement of the two processes to the scheduler")
	fs.StringVar(&o.json, "json", "", "write the results as JSON to this `file`; - is standard output, in place of the tables")
	fs.StringVar(&o.from, "from", "", "do not measure: take the results from this `file`, that --json wrote")
	fs.StringVar(&o.plots, "plots", "", "draw bandwidth by size and latency percentiles by peer into this `DIR` (SVG)")
	fs.StringVar(&o.page, "page", "", "put tables and pictures between the marks of this Markdown `file`, e.g. ../docs/performance.md")
	fs.StringVar(&o.run.ProfileDir, "profile", "", "write CPU profiles of both ends of every Weft sample into this `DIR`")
	fs.StringVar(&o.before, "before", beforeCommit, "the `commit` that processor time of small messages is compared with; '' for none")
	fs.BoolVar(&o.showPlan, "list", false, "list the workloads and end")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(help, "Usage: bench [flags]\n       bench compare [flags] BEFORE AFTER\n\nMeasures Weft beside plain TCP, libfabric and gRPC on loopback and prints the ratios.\n\n")
		fs.SetOutput(help)
		fs.PrintDefaults()
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: --help lists the flags", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: everything is said by flags, see --help", fs.Arg(0))
	}

	o.run.Rounds, o.run.Sample, o.run.Limit = 15, 200*time.Millisecond, 40*time.Minute
	if *quick {
		o.run.Rounds, o.run.Sample, o.run.Limit = 3, 40*time.Millisecond, 100*time.Second
	}
	if *rounds < 0 || *sample < 0 {
		return nil, errors.New("--rounds and --sample must be above 0")
	}
	if *rounds > 0 {
		o.run.Rounds = *rounds
	}
	if *sample > 0 {
		o.run.Sample = *sample
	}
	o.run.Warmup = min(o.run.Sample/5, 100*time.Millisecond)
	o.run.Pin = !*noPin
	if *congestion != "system" {
		o.run.Congestion = *congestion
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	asked := withAgainst(func(w Workload) bool { return match.MatchString(w.String()) })
	o.run.Groups = filter(plan(), func(w Workload) bool { return asked(w) && (!*quick || *only != "" || w.quick()) })
	if len(o.run.Groups) == 0 {
		return nil, fmt.Errorf("--only %q matches nothing: --list shows what there is", *only)
	}
	return o, nil
}

// withAgainst keeps, besides what keep approves of, what those are judged by.
func withAgainst(keep func(Workload) bool) func(Workload) bool {
	against := map[Workload]bool{}
	for _, g := range goals() {
		if keep(g.Of) {
			against[g.Against] = true
		}
	}
	return func(w Workload) bool { return keep(w) || against[w] }
}

// defaultCongestionFlag is defaultCongestion as the flag spells it.
func defaultCongestionFlag() string {
	if defaultCongestion == "" {
		return "system"
	}
	return defaultCongestion
}
