// This file keeps what servers call their files from giving orders to a terminal.

package main

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable is the name of a file to be shown, quoted if it has to be.
func printable(name string) string {
	clean := true
	for i, r := range name {
		if !unicode.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(name[i:], string(utf8.RuneError)) {
			clean = false
			break
		}
	}
	if clean {
		return name
	}
	return strconv.Quote(name)
}

// plain is a message with what in it is none for people escaped: it may hold names
// that a server has chosen. Ends of lines stay, as several errors have theirs.
func plain(message string) string {
	lines := strings.Split(message, "\n")
	for i, line := range lines {
		if shown := printable(line); shown != line {
			lines[i] = strings.ReplaceAll(shown[1:len(shown)-1], `\"`, `"`)
		}
	}
	return strings.Join(lines, "\n")
}
