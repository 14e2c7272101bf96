// The command line.

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// options are what the command line says.
type options struct {
	run      Run
	json     string
	plot     string
	showPlan bool
}

// parse reads the command line; asked for help, it writes it and returns
// flag.ErrHelp.
func parse(args []string, help io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("bench", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	quick := fs.Bool("quick", false, "about a minute: 3 rounds of short samples")
	rounds := fs.Int("rounds", 0, "how many times each sample is taken (default 9, with --quick 3)")
	sample := fs.Duration("sample", 0, "length of one sample (default 800ms, with --quick 300ms)")
	only := fs.String("only", "", "measure only comparisons that match this regular `expression`, e.g. 'write.*64KiB' (see --list)")
	congestion := fs.String("congestion", defaultCongestionFlag(), "congestion control of all sockets; system leaves the default")
	noPin := fs.Bool("no-pin", false, "leave the placement of the two processes to the scheduler")
	fs.StringVar(&o.json, "json", "", "write the results as JSON to this `file`; - is standard output, in place of the tables")
	fs.StringVar(&o.plot, "plot", "", "draw bandwidth against size into this `file` (.svg, .png, .pdf)")
	fs.StringVar(&o.run.ProfileDir, "profile", "", "write CPU profiles of both ends of every Weft sample into this `folder`")
	fs.BoolVar(&o.showPlan, "list", false, "list the comparisons and end")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(help, "Usage: bench [flags]\n\nMeasures Weft beside plain TCP on loopback and prints the ratios.\n\n")
		fs.SetOutput(help)
		fs.PrintDefaults()
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: --help lists the flags", err)
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q: everything is said by flags, see --help", fs.Arg(0))
	}

	o.run.Rounds, o.run.Sample = 9, 800*time.Millisecond
	if *quick {
		o.run.Rounds, o.run.Sample = 3, 300*time.Millisecond
	}
	if o.plot != "" && !slices.Contains(plotFormats, o.plotFormat()) {
		return nil, fmt.Errorf("--plot %s: the name ends in .%s", o.plot, strings.Join(plotFormats, ", ."))
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
	o.run.Groups = filter(plan(), func(c Comparison) bool { return match.MatchString(c.String()) })
	if len(o.run.Groups) == 0 {
		return nil, fmt.Errorf("--only %q matches none of the comparisons: --list shows them", *only)
	}
	return o, nil
}

// plotFormat is the ending of the plot's name.
func (o *options) plotFormat() string {
	return strings.ToLower(strings.TrimPrefix(filepath.Ext(o.plot), "."))
}

// defaultCongestionFlag is defaultCongestion as the flag spells it.
func defaultCongestionFlag() string {
	if defaultCongestion == "" {
		return "system"
	}
	return defaultCongestion
}
