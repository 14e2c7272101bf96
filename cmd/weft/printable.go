// This file quotes names in messages, so that a name that a server has chosen cannot
// control the terminal or imitate a message.

package main

import (
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/weft-rdma/weft/internal/quote"
)

// printable returns the name of a file for a terminal, as GNU ls shows it.
func printable(name string) string { return quote.Shell(name) }

// message returns the text of an error on one line, or on one line for each of the
// errors that errors.Join has joined. Whatever else would begin a line, or is not
// visible, comes from a name or an argument and is quoted or escaped.
func message(err error) string {
	var inner []error
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		inner = e.Unwrap()
	case interface{ Unwrap() error }:
		inner = append(inner, e.Unwrap())
	}
	rest := err.Error()
	var text strings.Builder
	for _, e := range inner {
		if e == nil {
			continue
		}
		if before, after, ok := strings.Cut(rest, e.Error()); ok {
			text.WriteString(ownText(err, before))
			text.WriteString(message(e))
			rest = after
		}
	}
	text.WriteString(ownText(err, rest))
	return text.String()
}

// ownText makes visible what err says itself, between the texts of the errors that it
// wraps. The system's errors hold names of files as they are: these are quoted.
func ownText(err error, text string) string {
	if text == "\n" { // of errors.Join
		return text
	}
	var names []string
	switch e := err.(type) {
	case *fs.PathError:
		names = append(names, e.Path)
	case *os.LinkError:
		names = append(names, e.Old, e.New)
	}
	for _, name := range names {
		if !quote.Plain(name) {
			text = strings.ReplaceAll(text, name, quote.Name(name))
		}
	}
	return escape(text)
}

// plain escapes what is not visible in a text of one or more lines.
func plain(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = escape(line)
	}
	return strings.Join(lines, "\n")
}

// escape escapes what is not visible, line feeds included.
func escape(text string) string {
	if quote.Plain(text) {
		return text
	}
	quoted := strconv.Quote(text)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
