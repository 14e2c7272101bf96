// The page docs/performance.md: what is between its two marks is made from a
// document; the rest is written by hand and stays.

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The marks between which the page is made.
const (
	pageBegin = "<!-- made by bench: begin -->\n"
	pageEnd   = "<!-- made by bench: end -->\n"
)

// writePage puts d between the marks of the page, and the pictures beside it.
func (d Document) writePage(name string) error {
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	before, rest, begun := bytes.Cut(page, []byte(pageBegin))
	_, after, ended := bytes.Cut(rest, []byte(pageEnd))
	if !begun || !ended {
		return fmt.Errorf("%s has not the lines %q and %q, between which the figures go", name, pageBegin, pageEnd)
	}
	pictures, err := d.writePlots(filepath.Dir(name))
	if err != nil {
		return err
	}
	var out bytes.Buffer
	out.Write(before)
	out.WriteString(pageBegin)
	fmt.Fprintln(&out)
	for _, line := range d.conditions() {
		fmt.Fprintln(&out, "-", line)
	}
	for _, p := range pictures {
		fmt.Fprintf(&out, "\n![%s](%s)\n", strings.TrimSuffix(p, filepath.Ext(p)), p)
	}
	for _, t := range d.tables() {
		if err := t.markdown(&out); err != nil {
			return err
		}
	}
	if err := d.failures(&out); err != nil {
		return err
	}
	fmt.Fprintln(&out)
	out.WriteString(pageEnd)
	out.Write(after)
	return os.WriteFile(name, out.Bytes(), 0o666)
}
