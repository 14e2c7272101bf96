// bench compare: two commits in turns, on one machine. It guards against slow drift: what is
// compared is each commit's ratio to software that is the same in both, and processor time,
// never absolute times; and the gate is wide.

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"
)

// comparedRows are what compare measures unless told otherwise: a row of each kind.
const comparedRows = `^weft (write|read|send) stream, batched 64B crc$|^weft (write|read) stream 1MiB crc$` +
	`|^weft write ping-pong, polling 64B crc$|^weft send ping-pong, event-driven 64B crc$|^weft connect, send, close 64B crc$` +
	`|^weft fetchadd stream, 16 outstanding 8B crc$|^weft send stream, batched, 1000 connections 64B crc$` +
	`|^weft-rdma read file, 16 at a time 4KiB crc$|^weft-rdma (read|write) file, 4 at a time 1MiB$`

// compareOptions are what its command line says.
type compareOptions struct {
	commits [2]string // before and after
	only    string
	turns   int
	sample  time.Duration
	gate    float64
}

func parseCompare(args []string, help io.Writer) (*compareOptions, error) {
	o := &compareOptions{}
	fs := flag.NewFlagSet("bench compare", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.StringVar(&o.only, "only", comparedRows, "compare what matches this regular `expression` in both commits")
	fs.IntVar(&o.turns, "turns", 15, "how many times each commit measures")
	fs.DurationVar(&o.sample, "sample", 200*time.Millisecond, "length of one sample")
	fs.Float64Var(&o.gate, "gate", 1.3, "fail if a median is worse by more than this factor, and most turns agree")
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(help, "Usage: bench compare [flags] BEFORE AFTER\n\nBuilds the bench of two commits, has them measure in turns, and compares their ratios to plain TCP, of files to go-nfs.\nThe status is 1 if a row is worse beyond the gate.\n\n")
		fs.SetOutput(help)
		fs.PrintDefaults()
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w: --help lists the flags", err)
	}
	if fs.NArg() != 2 {
		return nil, errors.New("compare: expected two commits, as in: compare main~20 HEAD")
	}
	o.commits = [2]string{fs.Arg(0), fs.Arg(1)}
	if o.turns < 1 || o.sample <= 0 || o.gate <= 1 {
		return nil, errors.New("compare: --turns and --sample must be above 0, --gate above 1")
	}
	if _, err := regexp.Compile(o.only); err != nil {
		return nil, fmt.Errorf("--only: %w", err)
	}
	return o, nil
}

// compareCommand is the whole of bench compare. It returns the exit status.
func compareCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseCompare(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	}
	all, err := o.measure(ctx, stderr)
	if err == nil {
		err = writeDrifts(stdout, all)
	}
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitError
	}
	if slices.ContainsFunc(all, func(d drift) bool { return d.worse(o.gate) }) {
		fmt.Fprintf(stderr, "bench: worse by more than a factor of %g\n", o.gate)
		return exitError
	}
	return exitOK
}

// measure builds both commits and lets them measure in turns.
func (o *compareOptions) measure(ctx context.Context, stderr io.Writer) ([]drift, error) {
	dir, err := os.MkdirTemp("", "weft-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var programs [2]string
	for i, commit := range o.commits {
		if programs[i], err = buildAt(ctx, commit, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return nil, fmt.Errorf("commit %s: %w", commit, err)
		}
	}
	var seen [2][]Document
	for turn := range o.turns {
		fmt.Fprintf(stderr, "turn %d of %d\n", turn+1, o.turns)
		for step := range 2 {
			i := (turn + step) % 2 // neither is always the first
			d, err := measureBy(ctx, programs[i], o.only, "--rounds", "1", "--sample", o.sample.String())
			if err != nil {
				return nil, fmt.Errorf("commit %s: %w", o.commits[i], err)
			}
			seen[i] = append(seen[i], d)
		}
	}
	all := drifts(seen[0], seen[1])
	if len(all) == 0 {
		return nil, fmt.Errorf("the two commits have no row in common that --only %q matches", o.only)
	}
	return all, nil
}

// A drift is what became of a row from one commit to the other.
type drift struct {
	row    string
	figure string // ratio to a baseline, or CPU time
	higher bool   // is better
	turns  []float64
}

// drifts sets the documents of two commits against each other, turn by turn.
func drifts(before, after []Document) []drift {
	var all []drift
	add := func(r Row, figure string, higher bool, a, b float64) {
		if a <= 0 || b <= 0 {
			return
		}
		row := fmt.Sprintf("%s %s %s, CRC %s", r.Peer, r.Work, sizeName(r.Size), onOff(r.CRC))
		i := slices.IndexFunc(all, func(d drift) bool { return d.row == row && d.figure == figure })
		if i < 0 {
			i = len(all)
			all = append(all, drift{row: row, figure: figure, higher: higher})
		}
		all[i].turns = append(all[i].turns, b/a)
	}
	for turn := range before {
		for _, a := range before[turn].Results {
			if a.Peer != Weft && a.Peer != WeftRDMA || a.Figures == nil {
				continue
			}
			for _, b := range after[turn].Results {
				if b.Figures == nil || a.Peer != b.Peer || a.RatioTo != b.RatioTo || a.Work != b.Work || a.Size != b.Size || a.CRC != b.CRC || a.Placement != b.Placement {
					continue
				}
				add(a, fmt.Sprintf("ratio to %s", a.RatioTo), a.Better == "higher", a.Ratio, b.Ratio)
				add(a, "CPU time", false, a.CPU, b.CPU)
			}
		}
	}
	return all
}

// worse says that the row is worse by more than the factor gate, in the median and in three
// turns of four: a few disturbed turns do not count.
func (d drift) worse(gate float64) bool {
	than := func(f, bound float64) bool {
		if d.higher {
			return f < 1/bound
		}
		return f > bound
	}
	agree := 0
	for _, f := range d.turns {
		if than(f, 1) {
			agree++
		}
	}
	return than(summarize(d.turns).Median, gate) && 4*agree >= 3*len(d.turns)
}

func writeDrifts(out io.Writer, all []drift) error {
	t := table{
		title: "After to before, inside each turn",
		head:  []string{"row", "figure", "median (min..max)", "better", "turns"},
	}
	for _, d := range all {
		s := summarize(d.turns)
		better := map[bool]string{true: "higher", false: "lower"}[d.higher]
		t.rows = append(t.rows, []string{d.row, d.figure, ratioFigure(s.Median, s.Min, s.Max), better, fmt.Sprint(len(d.turns))})
	}
	return t.plain(out)
}
