// Command programs runs RDMA programs that nobody here wrote, in pairs, on the drop-in
// library, and prints a table: which program, as which persona, and what came of it.
//
//	go run ./programs [flags]     in the folder dropin
//
// A row passes when both ends exit with status 0 (a server that never ends is killed) and
// print what they should. Rows whose programs are not installed are named with the command
// that installs them. Some programs are not in the packages of Debian 12: --suites builds
// them from Debian's newest sources into the user's cache, once.
//
// Programs run as an ordinary user: started by root, the command runs them as user 65534.
// The exit status is 0 when all rows that ran passed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"
	"time"
)

type options struct {
	limit            time.Duration
	markdown, suites bool
	list             bool
	run              *regexp.Regexp
	persona          string
	keep             bool
}

func main() {
	var o options
	flag.DurationVar(&o.limit, "limit", time.Minute, "time `LIMIT` of a row that has none of its own")
	flag.BoolVar(&o.markdown, "markdown", false, "write what came of the rows into the table of docs/programs.md")
	flag.BoolVar(&o.suites, "suites", false, "fetch and build the programs that Debian 12 lacks, then exit")
	flag.BoolVar(&o.list, "list", false, "list the rows, and what they need")
	flag.BoolVar(&o.keep, "keep", false, "keep the scratch folder")
	flag.StringVar(&o.persona, "persona", "", "run rows as `PERSONA` only: rnic or rc")
	flag.Func("run", "run rows whose name matches `REGEXP`", func(s string) (err error) {
		o.run, err = regexp.Compile(s)
		return err
	})
	flag.Parse()
	// An interrupt ends the row that runs, with all its processes, and the rows after it.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	failed, err := o.main(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "programs:", err)
		os.Exit(2)
	}
	if failed {
		os.Exit(1)
	}
}

func (o *options) main(ctx context.Context) (failed bool, err error) {
	switch {
	case flag.NArg() > 0:
		return false, fmt.Errorf("unexpected argument %q: choose rows with --run", flag.Arg(0))
	case o.suites:
		return false, buildSuites(ctx)
	}
	chosen := o.chosen()
	if len(chosen) == 0 {
		return false, errors.New("no row matches; --list shows them")
	}
	if o.list {
		for _, c := range chosen {
			fmt.Println(result{row: c.row, persona: c.persona, missing: c.row.missing()}.listed())
		}
		return false, nil
	}
	start := time.Now()
	table, err := o.runAll(ctx, chosen)
	if err != nil {
		return false, err
	}
	failed = table.summary(os.Stdout)
	fmt.Printf("in %v\n", time.Since(start).Round(time.Second))
	if o.markdown {
		err = table.document(ctx)
	}
	return failed, err
}

// A choice is a row to run as one persona.
type choice struct {
	row     *row
	persona string
}

func (o *options) chosen() (chosen []choice) {
	for i := range rows {
		for _, persona := range rows[i].personas {
			if (o.run == nil || o.run.MatchString(rows[i].name)) && (o.persona == "" || o.persona == persona) {
				chosen = append(chosen, choice{&rows[i], persona})
			}
		}
	}
	return chosen
}

func (o *options) runAll(ctx context.Context, chosen []choice) (results, error) {
	b, err := prepare(ctx)
	if err != nil {
		return nil, err
	}
	if o.keep {
		fmt.Println("scratch:", b.dir)
	} else {
		defer os.RemoveAll(b.dir)
	}
	b.limit = o.limit
	var table results
	for i, c := range chosen {
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		fmt.Printf("[%*d/%d] ", len(fmt.Sprint(len(chosen))), i+1, len(chosen))
		res := b.try(ctx, c.row, c.persona)
		fmt.Println(res)
		table = append(table, res)
	}
	return slices.Clip(table), nil
}
