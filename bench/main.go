// Command bench does the same work over Weft, plain TCP, libfabric and gRPC, in
// turns, between two processes on loopback, and prints the ratios.
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
	if role := os.Getenv(peerVariable); role != "" {
		if err := runAs(role, os.Stdin, os.Stdout); err != nil {
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
	if len(args) > 0 && args[0] == "compare" {
		return compareCommand(ctx, args[1:], stdout, stderr)
	}
	o, err := parse(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "bench:", err)
		return exitUsage
	case o.showPlan:
		for _, g := range o.run.Groups {
			for _, w := range g.all() {
				fmt.Fprintln(stdout, w)
			}
		}
		return exitOK
	}
	d, err := o.deliver(ctx, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "bench:", err)
		return exitError
	}
	if d.failed() {
		return exitError
	}
	return exitOK
}

// deliver measures, or reads what was measured, and writes it to where it is
// wanted.
func (o *options) deliver(ctx context.Context, stdout, stderr io.Writer) (d Document, err error) {
	jsonOut, err := o.create(stdout)
	if err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, jsonOut.Close()) }()
	if o.from != "" {
		d, err = readDocument(o.from)
	} else {
		d, err = o.measure(ctx, stderr)
	}
	if err != nil {
		return d, err
	}
	if o.json != "-" {
		if err := d.report(stdout); err != nil {
			return d, err
		}
	}
	if err := d.write(jsonOut); err != nil {
		return d, fmt.Errorf("json: %w", err)
	}
	if o.plots != "" {
		if _, err := d.writePlots(o.plots); err != nil {
			return d, fmt.Errorf("plots: %w", err)
		}
	}
	if o.page != "" {
		if err := d.writePage(o.page); err != nil {
			return d, fmt.Errorf("page: %w", err)
		}
	}
	return d, nil
}

// measure does the run.
func (o *options) measure(ctx context.Context, stderr io.Writer) (d Document, err error) {
	if o.run.ProfileDir != "" {
		if err := os.MkdirAll(o.run.ProfileDir, 0o777); err != nil {
			return d, err
		}
	}
	congestion, err := congestionInUse(ctx, o.run.Congestion)
	if err != nil {
		return d, err
	}
	wanted := func(p Peer) bool {
		return len(filter(o.run.Groups, func(w Workload) bool { return w.Peer == p || Peer(w.Path) == p })) > 0
	}
	if o.run.Peers, err = findPeers(ctx, wanted, o.before); err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, o.run.Peers.close()) }()
	o.run.Groups = without(o.run.Groups, o.run.Peers.missing)
	allowed := allowedCPUs() // before any placement narrows it
	o.run.Progress = progress(stderr, o.run.Rounds)
	samples, err := o.run.Do(ctx, allowed)
	if o.run.Progress != nil {
		fmt.Fprint(stderr, clearLine)
	}
	if err != nil {
		return d, err
	}
	return newDocument(&o.run, allowed, congestion, samples), nil
}

// create creates the file that the results go to. It does so before the work, so that a
// file that cannot be created costs no time. Without a name the results are discarded.
func (o *options) create(stdout io.Writer) (io.WriteCloser, error) {
	switch o.json {
	case "":
		return unclosed{io.Discard}, nil
	case "-":
		return unclosed{stdout}, nil
	}
	f, err := os.Create(o.json)
	if err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return f, nil
}

// An unclosed writer is somebody else's to close.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

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
