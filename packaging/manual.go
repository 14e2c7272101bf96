// This file writes the manual pages from the help of the command.

package main

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// manuals writes a page for the command and for each of its subcommands, and returns the files.
func (b *builder) manuals(ctx context.Context) ([]string, error) {
	return b.manual(ctx, []string{"weft"}, "software RDMA: files over RDMA, and RDMA programs without RDMA hardware")
}

// manual writes the pages of a command and of those below it. The name is its words, and
// the short text what the command above says of it.
func (b *builder) manual(ctx context.Context, name []string, short string) (files []string, err error) {
	// The help shows the directory of the state as a default, which is that of a service.
	text, err := execute(ctx, b.root, []string{"STATE_DIRECTORY=/var/lib/weft"}, b.file("native"), append(name[1:len(name):len(name)], "--help")...)
	if err != nil {
		return nil, err
	}
	h := parseHelp(text)
	page := b.file(strings.Join(name, "-") + ".1")
	if err := os.WriteFile(page, []byte(h.page(name, short, b.identity)), 0o644); err != nil {
		return nil, err
	}
	files = append(files, page)
	for _, sub := range h.commands() {
		below, err := b.manual(ctx, append(name[:len(name):len(name)], sub.name), sub.text)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	return files, nil
}

// A help is the text that --help prints, in parts.
type help struct {
	about    string
	sections []section // Usage, Examples, Flags, and lists of commands
}

type section struct{ title, text string }

// An entry is a line of a list: of commands, or of flags.
type entry struct{ name, text string }

var heading = regexp.MustCompile(`^[A-Z][A-Za-z ]*:$`)

func parseHelp(text string) (h help) {
	about, rest, _ := strings.Cut(text, "\nUsage:\n")
	h.about = strings.TrimSpace(about)
	h.sections = []section{{title: "Usage"}}
	for line := range strings.Lines(rest) {
		line = strings.TrimRight(line, "\n")
		last := &h.sections[len(h.sections)-1]
		switch {
		case heading.MatchString(line):
			h.sections = append(h.sections, section{title: strings.TrimSuffix(line, ":")})
		case line == "" || strings.HasPrefix(line, " "):
			last.text += line + "\n"
		} // what is left says how to ask for more help
	}
	return h
}

// section returns the text of a section, empty if there is none.
func (h help) section(title string) string {
	for _, s := range h.sections {
		if s.title == title {
			return strings.Trim(s.text, "\n")
		}
	}
	return ""
}

// commands are those that the help lists and that have something to say.
func (h help) commands() (all []entry) {
	for _, s := range h.sections {
		if !strings.HasSuffix(strings.ToLower(s.title), "commands") {
			continue
		}
		for _, e := range entries(s.text) {
			if e.name != "help" && e.name != "completion" {
				all = append(all, e)
			}
		}
	}
	return all
}

// entries are those of a list. A line that is indented further goes on with the text of
// the one before.
func entries(list string) (all []entry) {
	for line := range strings.Lines(list) {
		words := strings.TrimSpace(line)
		name, text, found := strings.Cut(words, "  ")
		switch indent := len(line) - len(strings.TrimLeft(line, " ")); {
		case words == "":
		case len(all) > 0 && indent > 6:
			all[len(all)-1].text += " " + words
		case found || indent <= 6:
			all = append(all, entry{name, strings.TrimSpace(text)})
		}
	}
	return all
}

// page returns the manual page.
func (h help) page(name []string, short string, id identity) string {
	var p page
	p.request(".TH %s 1 %s %q Weft", strings.ToUpper(strings.Join(name, "-")), id.at.Format("2006-01-02"), "weft "+id.version)
	p.request(".SH NAME\n%s \\- %s", roff(strings.Join(name, "-")), roff(short))
	p.request(".SH SYNOPSIS")
	p.asIs(unindent(h.section("Usage")))
	p.request(".SH DESCRIPTION")
	p.paragraphs(h.about)
	if commands := h.commands(); len(commands) > 0 {
		p.request(".SH COMMANDS\nEach has a page of its own.")
		for _, c := range commands {
			p.request(".TP\n.BR %s (1)\n%s", roff(strings.Join(append(name[:len(name):len(name)], c.name), "-")), roff(c.text))
		}
	}
	for _, title := range []string{"Flags", "Global Flags"} {
		if flags := entries(h.section(title)); len(flags) > 0 {
			p.request(".SH %s", strings.ToUpper(strings.Replace(title, "Flags", "Options", 1)))
			for _, f := range flags {
				p.request(".TP\n.B %s\n%s", roff(f.name), roff(f.text))
			}
		}
	}
	if examples := h.section("Examples"); examples != "" {
		p.request(".SH EXAMPLES")
		p.asIs(unindent(examples))
	}
	p.request(".SH SEE ALSO")
	if len(name) > 1 {
		p.request(".BR %s (1),", roff(strings.Join(name[:len(name)-1], "-")))
	}
	p.request("the documentation in /usr/share/doc/weft")
	return p.String()
}

// A page is text in roff.
type page struct{ strings.Builder }

func (p *page) request(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

// asIs appends lines that are not filled.
func (p *page) asIs(text string) {
	p.request(".nf")
	for line := range strings.Lines(text) {
		p.request("%s", roff(strings.TrimRight(line, "\n")))
	}
	p.request(".fi")
}

// unindent takes the two blanks away with which a help indents its sections.
func unindent(text string) string {
	return strings.ReplaceAll(strings.TrimPrefix(text, "  "), "\n  ", "\n")
}

// paragraphs appends text, in which what is indented, and what follows a heading, is left as it is.
func (p *page) paragraphs(text string) {
	for i, paragraph := range strings.Split(text, "\n\n") {
		if i > 0 {
			p.request(".PP")
		}
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			p.asIs(paragraph)
		} else {
			p.request("%s", roff(paragraph))
		}
	}
}

var glyphs = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`)

// roff returns text that roff prints as it is.
func roff(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		line = glyphs.Replace(line)
		if strings.HasPrefix(line, ".") {
			line = `\&` + line // no request
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}
