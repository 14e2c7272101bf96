// Mutate breaks rules on purpose, by one mutation of the source at a time, and runs the
// tests that claim the rows of the rule. A claim is good if one of its tests fails. The
// mutations are in conformance/mutations. The source files do not change: the go command
// gets an overlay.
//
//	go run ./conformance/mutate                 mutations without a result
//	go run ./conformance/mutate -rows '^MPA-4'  only these rows
//	go run ./conformance/mutate -again          all of them
//
// Results are written to conformance/mutated.tsv after each mutation, so that an
// interrupted run can be continued. A run of all takes an hour or two. After it,
// go generate ./conformance brings the pages of docs/conformance up to date.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/weft-rdma/weft/conformance"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	rows := flag.String("rows", "", "only rows that match this `regexp`")
	again := flag.Bool("again", false, "also run mutations that have a result")
	limit := flag.Duration("limit", time.Minute, "time limit for the tests of one package, without building them")
	flag.Parse()
	if err := run(ctx, *rows, *again, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, rows string, again bool, limit time.Duration) error {
	pattern, err := regexp.Compile(rows)
	if err != nil {
		return err
	}
	root, err := conformance.Root(".")
	if err != nil {
		return err
	}
	audit, err := conformance.New(root)
	if err != nil {
		return err
	}
	path := filepath.Join(root, filepath.FromSlash(conformance.ResultPath))
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	book, err := conformance.ParseResults(string(text))
	if err != nil {
		return err
	}
	trials := audit.Trials()
	book.Keep(trials)
	trials = pick(trials, book, pattern, again)
	counts := make(map[conformance.Verdict]int)
	for i, t := range trials {
		result, err := try(ctx, root, t, limit)
		if err != nil {
			return errors.Join(err, ctx.Err())
		}
		counts[result.Verdict]++
		fmt.Printf("%*d/%d %-9s %-14s %s\n", len(fmt.Sprint(len(trials))), i+1, len(trials), result.Verdict, t.ID, strings.TrimSpace(t.Mutation.Title+"  "+result.Test))
		book.Add(result)
		if err := os.WriteFile(path, book.Format(), 0o644); err != nil {
			return err
		}
	}
	fmt.Printf("%d noticed, %d hung, %d survived\n", counts[conformance.Noticed], counts[conformance.Hung], counts[conformance.Survived])
	for _, p := range audit.Survivors(book) {
		fmt.Println(p)
	}
	return nil
}

// pick returns the trials to make.
func pick(all []conformance.Trial, book conformance.Book, pattern *regexp.Regexp, again bool) (some []conformance.Trial) {
	for _, t := range all {
		if _, done := book.Of(t); pattern.MatchString(t.ID) && (again || !done) {
			some = append(some, t)
		}
	}
	return some
}
