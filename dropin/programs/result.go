package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A result is what came of a row.
type result struct {
	row     *row
	persona string
	missing error // what keeps it from running
	err     error
	note    string // what a scene has to add
	tails   string // what both ends said last, of a row that failed
	took    time.Duration
}

func (r result) String() string {
	switch {
	case r.missing != nil:
		return fmt.Sprintf("NOT RUN  %-4s  %s: %v", r.persona, r.row.name, r.missing)
	case r.err != nil:
		return fmt.Sprintf("FAILED   %-4s  %s: %v\n%s", r.persona, r.row.name, r.err, strings.TrimRight(r.tails, "\n"))
	}
	line := fmt.Sprintf("ok       %-4s  %s (%.1f s)", r.persona, r.row.name, r.took.Seconds())
	if r.note != "" {
		line += ": " + r.note
	}
	return line
}

// listed is the line of --list.
func (r result) listed() string {
	line := fmt.Sprintf("%-4s  %s  [%s]", r.persona, r.row.name, r.row.pkg)
	if r.missing != nil {
		line += fmt.Sprintf("  (%v)", r.missing)
	}
	return line
}

type results []result

// summary counts, names what could not run and what failed, and reports whether
// something failed.
func (rs results) summary(w io.Writer) (failed bool) {
	ok := 0
	var bad, missing []string
	for _, r := range rs {
		switch {
		case r.missing != nil:
			if text := r.missing.Error(); !slices.Contains(missing, text) {
				missing = append(missing, text)
			}
		case r.err != nil:
			bad = append(bad, r.persona+"  "+r.row.name)
		default:
			ok++
		}
	}
	for _, text := range bad {
		fmt.Fprintln(w, "failed:", text)
	}
	for _, text := range missing {
		fmt.Fprintln(w, "not run:", text)
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d not run\n", ok, len(bad), len(rs)-ok-len(bad))
	return len(bad) > 0
}

// markdown is the table of docs/programs.md, of all rows. Those that did not run now have what
// the table before says.
func (rs results) markdown(all []row, before string) string {
	words := map[string]string{}
	for line := range strings.Lines(before) {
		if f := strings.Split(line, "|"); len(f) == 6 {
			name := strings.Trim(f[1], " `")
			words[name+" rnic"], words[name+" rc"] = strings.TrimSpace(f[3]), strings.TrimSpace(f[4])
		}
	}
	for _, r := range rs {
		words[r.row.name+" "+r.persona] = r.word()
	}
	var b strings.Builder
	b.WriteString("| program | package | rnic | rc |\n|---|---|---|---|\n")
	for i := range all {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", all[i].name, all[i].pkg, all[i].cell("rnic", words), all[i].cell("rc", words))
	}
	return b.String()
}

// cell is what came of a row as a persona.
func (r *row) cell(persona string, words map[string]string) string {
	word := words[r.name+" "+persona]
	switch {
	case !slices.Contains(r.personas, persona):
		return "-"
	case word == "" || word == "-":
		return "not run"
	}
	return word
}

// word is a result in the table.
func (r result) word() string {
	switch {
	case r.missing != nil:
		return "not run"
	case r.err != nil:
		return "fails"
	case r.note != "":
		return "ok: " + r.note
	}
	return "ok"
}
