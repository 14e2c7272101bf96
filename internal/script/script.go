// Package script runs tests that are written as text: what happens, and what comes of
// it. A script is a file of steps that blank lines separate:
//
//	# A comment.
//	command argument argument
//	command argument
//	----
//	what came of these
//
// A test gives Run a function that executes one command and returns what came of it.
// With the flag -script.update the scripts are rewritten with what comes of them now,
// to be looked at before they are committed.
package script

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("script.update", false, "rewrite the scripts of the tests with what comes of them now")

// A step is some commands and what is expected of them.
type step struct {
	line     int      // of the first command
	text     []string // comments and commands, as they are
	commands [][]string
	want     string
}

// Files runs a subtest for each file that pattern matches, which is at least one.
func Files(t *testing.T, pattern string, run func(t *testing.T, file string)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s matches no file: %v", pattern, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { run(t, file) })
	}
}

// Run runs the script in file. do executes a command; what the commands of a step
// return is compared together, line by line.
func Run(t *testing.T, file string, do func(command string, args []string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parse(string(text))
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for i := range steps {
		s := &steps[i]
		var got []string
		for _, c := range s.commands {
			if line := do(c[0], c[1:]); line != "" {
				got = append(got, line)
			}
		}
		now := strings.Join(got, "\n")
		if now != s.want && !*update {
			t.Errorf("%s:%d: %s\ncame to\n%s\nexpected\n%s", file, s.line, strings.Join(s.text, "\n"), indent(now), indent(s.want))
		}
		s.want = now
	}
	if *update {
		if err := os.WriteFile(file, []byte(format(steps)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func indent(s string) string { return "\t" + strings.ReplaceAll(s, "\n", "\n\t") }

func parse(text string) (steps []step, err error) {
	var s step
	expecting := false
	for i, line := range append(strings.Split(text, "\n"), "") {
		switch {
		case strings.TrimSpace(line) == "":
			if len(s.commands) > 0 && !expecting {
				return nil, fmt.Errorf("line %d: a step without ----", s.line)
			}
			if len(s.text) > 0 {
				steps = append(steps, s)
			}
			s, expecting = step{}, false
		case line == "----":
			expecting = true
		case expecting && s.want == "":
			s.want = line
		case expecting:
			s.want += "\n" + line
		default:
			s.text = append(s.text, line)
			if !strings.HasPrefix(line, "#") {
				if s.commands == nil {
					s.line = i + 1
				}
				s.commands = append(s.commands, strings.Fields(line))
			}
		}
	}
	return steps, nil
}

// format is the inverse of parse.
func format(steps []step) string {
	var b strings.Builder
	for i, s := range steps {
		if i > 0 {
			b.WriteByte('\n')
		}
		for _, line := range s.text {
			b.WriteString(line + "\n")
		}
		if len(s.commands) == 0 {
			continue // comments only
		}
		b.WriteString("----\n")
		if s.want != "" {
			b.WriteString(s.want + "\n")
		}
	}
	return b.String()
}
