package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Between these marks docs/programs.md has the table.
const (
	tableBegins = "<!-- This table is written by go run ./programs --markdown. -->\n"
	tableEnds   = "<!-- The end of the table. -->\n"
)

// document writes the table into docs/programs.md.
func (rs results) document(ctx context.Context) error {
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	name := filepath.Join(root, "docs", "programs.md")
	page, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	changed, err := between(string(page), func(before string) string { return rs.markdown(rows, before) })
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(name, []byte(changed), 0o644)
}

// between puts a table between the marks of a page, which it is made of.
func between(page string, table func(before string) string) (string, error) {
	before, rest, begins := strings.Cut(page, tableBegins)
	old, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		return "", fmt.Errorf("it lacks the lines %q and %q", strings.TrimSpace(tableBegins), strings.TrimSpace(tableEnds))
	}
	return before + tableBegins + "\n" + table(old) + "\n" + tableEnds + after, nil
}
