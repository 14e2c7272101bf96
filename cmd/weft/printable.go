// This file keeps what servers call their files from giving orders to a terminal,
// and from looking like what the command itself says.

package main

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/weft-rdma/weft/internal/quote"
)

// printable is the name of a file for a terminal, as GNU ls shows it.
func printable(name string) string { return quote.Shell(name) }

// message is an error for people. Systems put names into their errors as they are:
// those that would take several lines, or are not seen, are quoted.
func message(err error) string {
	text := err.Error()
	for _, name := range namesIn(err) {
		if !quote.Plain(name) {
			text = strings.ReplaceAll(text, name, quote.Name(name))
		}
	}
	return plain(text)
}

// namesIn are the names of files in an error of the system, and in those that it
// wraps.
func namesIn(err error) (names []string) {
	switch e := err.(type) {
	case *fs.PathError:
		names = append(names, e.Path)
	case *os.LinkError:
		names = append(names, e.Old, e.New)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			names = append(names, namesIn(inner)...)
		}
	}
	if inner := errors.Unwrap(err); inner != nil {
		names = append(names, namesIn(inner)...)
	}
	return names
}

// plain is a message with what in it is none for people escaped. Ends of lines stay,
// as several errors have theirs.
func plain(message string) string {
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		if !quote.Plain(line) {
			quoted := strconv.Quote(line)
			lines[i] = strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
		}
	}
	return strings.Join(lines, "\n")
}
