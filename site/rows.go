// This file collects the rows of the conformance tables for the search over all of them.

package main

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// rowLine is a line of a table of requirements: row, section, level, requirement, tests.
var rowLine = regexp.MustCompile(`(?m)^\| ([A-Z][A-Z0-9]*-[\w.]+-\w+) \| ([^|]*) \| ([^|]*) \| ([^|]*) \| ([^|]*) \|`)

// writeRows writes a script that holds the rows; a script loads from a disk, too, where a page may not fetch.
// A row is: id, page, section, level, requirement, number of tests.
func (s *Site) writeRows(documents []*Document) error {
	rows := [][]any{}
	for _, d := range documents {
		if path.Dir(d.Path) != "docs/conformance" {
			continue
		}
		table, _, _ := strings.Cut(d.Body, "\n## Exclusions")
		for _, m := range rowLine.FindAllStringSubmatch(table, -1) {
			rows = append(rows, []any{m[1], path.Base(d.Address), m[2], strings.TrimSpace(m[3]), m[4], strings.Count(m[5], "](../../")})
		}
	}
	if len(rows) == 0 {
		return fmt.Errorf("no rows in docs/conformance")
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	return s.write("static/docs/rows.js", "const conformanceRows = "+string(text)+";\n")
}
