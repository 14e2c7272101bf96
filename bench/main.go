// Command bench does the same work over Weft and over plain TCP, side by side,
// between two processes on loopback, and prints the ratios.
//
//	go run . --quick --json results.json
//
// README.md says what is compared, why that is fair, and how to read it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	if os.Getenv(peerVariable) != "" {
		if err := runPeer(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt kills
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// Exit statuses.
const (
	exitOK    = 0
	exitError = 1 // something failed
	exitUsage = 2 // it was asked wrongly
)

// command is the whole program but for the process around it. It returns the
// exit status.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	case o.showPlan:
		for _, g := range o.run.Groups {
			for _, c := range g {
				fmt.Fprintln(stdout, c)
			}
		}
		return exitOK
	}
	failed, err := o.measure(ctx, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitError
	}
	if failed {
		return exitError
	}
	return exitOK
}

// measure runs and reports. failed says that some of the workloads did.
func (o *options) measure(ctx context.Context, stdout, stderr io.Writer) (failed bool, err error) {
	if o.run.ProfileDir != "" {
		if err := os.MkdirAll(o.run.ProfileDir, 0o777); err != nil {
			return false, err
		}
	}
	jsonOut, plotOut, err := o.create(stdout)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, jsonOut.Close(), plotOut.Close()) }()
	congestion, err := congestionInUse(ctx, o.run.Congestion)
	if err != nil {
		return false, err
	}
	o.run.Progress = progress(stderr, o.run.Rounds)
	samples, err := o.run.Do(ctx)
	if o.run.Progress != nil {
		fmt.Fprint(stderr, clearLine)
	}
	if err != nil {
		return false, err
	}
	all := results(o.run.Groups, samples)
	for _, r := range all {
		failed = failed || r.Err != nil
	}

	if o.json != "-" {
		fmt.Fprintf(stdout, "Weft beside plain TCP on loopback, two processes, %d rounds of %v, congestion control %s.\n",
			o.run.Rounds, o.run.Sample, orUnknown(congestion))
		fmt.Fprintln(stdout, "Figures: median over the rounds (min..max). Ratios: Weft to TCP, taken inside each round.")
		if err := writeTables(stdout, all); err != nil {
			return failed, err
		}
	}
	if err := newDocument(&o.run, congestion, all).write(jsonOut); err != nil {
		return failed, fmt.Errorf("json: %w", err)
	}
	if o.plot != "" {
		if err := writePlot(plotOut, o.plotFormat(), all); err != nil {
			return failed, fmt.Errorf("plot: %w", err)
		}
	}
	return failed, nil
}

// create creates the files that the results go to, before the work, which is
// not to be in vain. What was not asked for goes nowhere.
func (o *options) create(stdout io.Writer) (jsonOut, plotOut io.WriteCloser, err error) {
	jsonOut, plotOut = unclosed{io.Discard}, unclosed{io.Discard}
	switch o.json {
	case "":
	case "-":
		jsonOut = unclosed{stdout}
	default:
		if jsonOut, err = os.Create(o.json); err != nil {
			return nil, nil, fmt.Errorf("json: %w", err)
		}
	}
	if o.plot != "" {
		if plotOut, err = os.Create(o.plot); err != nil {
			return nil, nil, errors.Join(fmt.Errorf("plot: %w", err), jsonOut.Close())
		}
	}
	return jsonOut, plotOut, nil
}

// An unclosed writer is somebody else's to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// clearLine takes a progress line off a terminal.
const clearLine = "\r\x1b[K"

// progress returns what shows a run's progress on stderr, as one line that
// overwrites itself; nil when that is no terminal.
func progress(stderr io.Writer, rounds int) func(int, int, int, Workload) {
	f, ok := stderr.(*os.File)
	if !ok {
		return nil
	}
	if st, err := f.Stat(); err != nil || st.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return func(round, sample, samples int, w Workload) {
		fmt.Fprintf(f, "%sround %d of %d, %d of %d: %v", clearLine, round+1, rounds, sample+1, samples, w)
	}
}
