package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A result is what came of a row.
type result struct {
	row     *row
	persona string
	missing bool
	note    string // to be said when it is ok
	err     error
}

func (r result) String() string {
	switch {
	case r.missing:
		return fmt.Sprintf("NOT RUN  %-4s  %s: apt-get install %s", r.persona, r.row.name, r.row.pkg)
	case r.err != nil:
		return fmt.Sprintf("FAILED   %-4s  %s: %v", r.persona, r.row.name, r.err)
	}
	if r.note != "" {
		return fmt.Sprintf("ok       %-4s  %s: %s", r.persona, r.row.name, r.note)
	}
	return fmt.Sprintf("ok       %-4s  %s", r.persona, r.row.name)
}

type results []result

// summary counts, and reports whether something failed.
func (rs results) summary(w io.Writer) (failed bool) {
	ok, bad, missing := 0, 0, []string{}
	for _, r := range rs {
		switch {
		case r.missing:
			if !slices.Contains(missing, r.row.pkg) {
				missing = append(missing, r.row.pkg)
			}
		case r.err != nil:
			bad++
		default:
			ok++
		}
	}
	fmt.Fprintf(w, "%d passed, %d failed\n", ok, bad)
	if len(missing) > 0 {
		fmt.Fprintf(w, "not installed: apt-get install %s\n", strings.Join(missing, " "))
	}
	return bad > 0
}

// markdown is the table of docs/programs.md.
func (rs results) markdown() string {
	var b strings.Builder
	b.WriteString("| program | package | rnic | rc |\n|---|---|---|---|\n")
	var names []string
	cells := map[string]map[string]string{}
	pkgs := map[string]string{}
	for _, r := range rs {
		name := r.row.name
		if cells[name] == nil {
			names, cells[name] = append(names, name), map[string]string{}
		}
		pkgs[name], cells[name][r.persona] = r.row.pkg, r.word()
	}
	for _, name := range names {
		c := cells[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, pkgs[name], orDash(c["rnic"]), orDash(c["rc"]))
	}
	return b.String()
}

func (r result) word() string {
	switch {
	case r.missing:
		return "not run"
	case r.err != nil:
		return "fails"
	}
	return "ok"
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
