// What is said around the tables: where and how, what is left out, what failed.

package main

import (
	"fmt"
	"io"
	"strings"
)

// report writes everything for a terminal.
func (d Document) report(out io.Writer) error {
	fmt.Fprintln(out, "Weft beside its peers, between two processes on loopback.")
	for _, line := range d.conditions() {
		fmt.Fprintln(out, line)
	}
	for _, t := range d.tables() {
		if err := t.plain(out); err != nil {
			return err
		}
	}
	return d.failures(out)
}

// conditions says where and how the figures came about.
func (d Document) conditions() []string {
	s := d.System
	lines := []string{
		fmt.Sprintf("%d processors %s, %s/%s %s, %s.", s.CPUs, s.Processor, s.OS, s.Arch, s.Kernel, s.Go),
		fmt.Sprintf("%d rounds of %gs samples; congestion control %s; placement: %s.",
			s.Rounds, s.Sample, orUnknown(s.Congestion), strings.Join(s.Placements, "; ")),
		"Figures: median over the rounds (min..max). Ratios are taken inside each round.",
		fmt.Sprintf("Repeated: %d rounds of a group whose baseline was outside %g to %g of its own median; %d still are.",
			s.Repeated, quietLeast, quietMost, s.Restless),
	}
	if s.Rounds < soundRounds {
		lines = append(lines, fmt.Sprintf("Fewer than %d rounds: an indication, no verdict.", soundRounds))
	}
	for _, m := range d.Missing {
		line := fmt.Sprintf("Left out: %s, for %s.", m.Peer, m.Why)
		if m.Remedy != "" {
			line += " To have it: " + m.Remedy
		}
		lines = append(lines, line)
	}
	return lines
}

// soundRounds is how many rounds a median needs to be worth anything.
const soundRounds = 15

// failures says, once for each workload that failed, why.
func (d Document) failures(out io.Writer) error {
	said := map[string]bool{}
	for _, r := range d.Results {
		if r.Error == "" || said[r.Error] {
			continue
		}
		if len(said) == 0 {
			fmt.Fprintln(out, "\nFailed:")
		}
		said[r.Error] = true
		if _, err := fmt.Fprintf(out, "  %v\n", r.Error); err != nil {
			return err
		}
	}
	return nil
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}
