// Package suite runs cases one after the other and prints a line for each.
package suite

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Suite runs cases. It belongs to one goroutine.
type Suite struct {
	Out   io.Writer
	Logs  string         // directory for what the cases leave behind
	Only  *regexp.Regexp // names of the cases to run; nil is all
	Limit time.Duration  // for one case

	passed int
	failed []string
}

// A Case is one that runs.
type Case struct {
	context.Context
	Name string
	dir  string
	log  strings.Builder
	note string
}

// File returns the path of a file in the case's own directory of logs.
func (c *Case) File(name string) string { return filepath.Join(c.dir, name) }

// Logf adds a line to the case's log.
func (c *Case) Logf(format string, args ...any) { fmt.Fprintf(&c.log, format+"\n", args...) }

// Notef says in a few words what a passing case showed, for its line.
func (c *Case) Notef(format string, args ...any) { c.note = fmt.Sprintf(format, args...) }

// Run runs a case unless Only leaves it out. Names are words separated by
// slashes.
func (s *Suite) Run(ctx context.Context, name string, body func(*Case) error) {
	if ctx.Err() != nil || s.Only != nil && !s.Only.MatchString(name) {
		return
	}
	limited, cancel := context.WithTimeoutCause(ctx, s.Limit, fmt.Errorf("not done within %v", s.Limit))
	defer cancel()
	c := &Case{Context: limited, Name: name, dir: filepath.Join(s.Logs, filepath.FromSlash(name))}
	begin := time.Now()
	err := os.MkdirAll(c.dir, 0o755)
	if err == nil {
		err = body(c)
	}
	if err != nil && limited.Err() != nil {
		err = fmt.Errorf("%w (%w)", err, context.Cause(limited))
	}
	if err != nil && ctx.Err() != nil { // interrupted: it says nothing about the case
		fmt.Fprintf(s.Out, "STOP  %s\n", name)
		return
	}
	took := time.Since(begin).Round(10 * time.Millisecond)
	if err == nil {
		s.passed++
		fmt.Fprintf(s.Out, "PASS  %-52s %7v  %s\n", name, took, c.note)
	} else {
		s.failed = append(s.failed, name)
		fmt.Fprintf(s.Out, "FAIL  %-52s %7v  %s\n", name, took, oneLine(err.Error()))
		c.Logf("FAIL: %v", err)
	}
	if c.log.Len() > 0 {
		if err := os.WriteFile(c.File("log.txt"), []byte(c.log.String()), 0o644); err != nil {
			fmt.Fprintf(s.Out, "      the log could not be written: %v\n", err)
		}
	}
}

// Fail counts a failure outside of any case, which keeps others from running.
func (s *Suite) Fail(name string, err error) {
	s.failed = append(s.failed, name)
	fmt.Fprintf(s.Out, "FAIL  %-52s          %s\n", name, oneLine(err.Error()))
}

// Summary prints the count, and names what failed; ok reports whether at least
// one case ran and none failed.
func (s *Suite) Summary() (ok bool) {
	fmt.Fprintf(s.Out, "\n%d passed, %d failed; logs in %s\n", s.passed, len(s.failed), s.Logs)
	for _, name := range s.failed {
		fmt.Fprintf(s.Out, "  failed: %s\n", name)
	}
	return s.passed > 0 && len(s.failed) == 0
}

// oneLine keeps a reason to one line of bearable length; the log has it all.
func oneLine(text string) string {
	const longest = 300
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = text[:longest] + " ..."
	}
	return text
}
