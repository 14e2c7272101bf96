// This file writes the manual page from the help of the command.

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// This file makes the manual page, of what the command says of itself.

// manual writes weft.1: the help of the command, and of each of its subcommands.
func (b *builder) manual(ctx context.Context) error {
	help, err := b.execute(ctx, nil, b.file("native"), "--help")
	if err != nil {
		return err
	}
	var page strings.Builder
	page.WriteString(".TH WEFT 1\n.SH NAME\nweft \\- software RDMA: iWARP, files over RDMA, RDMA programs without RDMA hardware\n")
	page.WriteString(".SH SYNOPSIS\n.B weft\n.I COMMAND\n[\\fIFLAGS\\fR] [\\fIARGUMENTS\\fR]\n")
	section(&page, "DESCRIPTION", help)
	for _, name := range subcommands(help) {
		text, err := b.execute(ctx, nil, b.file("native"), name, "--help")
		if err != nil {
			return err
		}
		section(&page, "weft "+name, text)
	}
	return os.WriteFile(b.file("weft.1"), []byte(page.String()), 0o644)
}

// section appends a text as it is.
func section(page *strings.Builder, title, text string) {
	fmt.Fprintf(page, ".SH %q\n.nf\n", title)
	for line := range strings.Lines(text) {
		line = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(strings.TrimRight(line, "\n"))
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line // no request of roff
		}
		page.WriteString(line + "\n")
	}
	page.WriteString(".fi\n")
}

var (
	commandHeading = regexp.MustCompile(`(?i)commands:$`)
	commandLine    = regexp.MustCompile(`^  ([a-z][a-z-]*) `)
)

// subcommands are the names that a help lists.
func subcommands(help string) (names []string) {
	listed := false
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		switch m := commandLine.FindStringSubmatch(line); {
		case commandHeading.MatchString(line):
			listed = true
		case !strings.HasPrefix(line, " ") && line != "":
			listed = false
		case listed && m != nil && m[1] != "help" && m[1] != "completion":
			names = append(names, m[1])
		}
	}
	return names
}
