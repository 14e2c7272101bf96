// This file makes pages of files and directories that documents link to: source text with
// numbered lines, pictures as they are, lists of what is in a directory.

package main

import (
	"fmt"
	"html"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode/utf8"
)

var testFunction = regexp.MustCompile(`^func ((?:Test|Example|Fuzz|Benchmark)\w*)\(`)

// writeSources writes a page for each path that a document links to and that has none.
func (s *Site) writeSources(documents []*Document) error {
	for _, d := range documents {
		for _, to := range d.links() {
			if _, ok := s.addresses[to]; ok {
				continue
			}
			if err := s.writeTarget(to); err != nil {
				return fmt.Errorf("%s links to %s: %w", d.Path, to, err)
			}
		}
	}
	return nil
}

func (s *Site) writeTarget(name string) error {
	info, err := fs.Stat(s.repo, name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return s.writeDirectory(name)
	}
	text, err := fs.ReadFile(s.repo, name)
	if err != nil {
		return err
	}
	if !utf8.Valid(text) || path.Ext(name) == ".svg" || path.Ext(name) == ".json" {
		s.addresses[name] = name
		return s.write(path.Join("static", name), string(text))
	}
	return s.writeSource(name, string(text))
}

// writeSource writes the page of a file, and notes where its tests are.
func (s *Site) writeSource(name, text string) error {
	address := path.Join("source", name) + ".html"
	s.addresses[name] = address
	n := 0
	for line := range strings.Lines(text) {
		n++
		if m := testFunction.FindStringSubmatch(line); m != nil {
			s.addresses[name+"#"+m[1]] = fmt.Sprintf("%s#L%d", address, n)
		}
	}
	body, err := highlight(path.Base(name), text, true)
	if err != nil {
		return err
	}
	return s.writePage(address, front{Title: name, URL: "/" + address, Dir: path.Dir(name), Source: name, NoContents: true}, body)
}

// writeDirectory writes a page with the files of a directory; those that have pages are links.
func (s *Site) writeDirectory(name string) error {
	address := path.Join("source", name) + ".html"
	s.addresses[name] = address
	entries, err := fs.ReadDir(s.repo, name)
	if err != nil {
		return err
	}
	var body strings.Builder
	body.WriteString("<ul>\n")
	for _, e := range entries {
		suffix := ""
		if e.IsDir() {
			suffix = "/"
		}
		fmt.Fprintf(&body, "<li><code>%s%s</code></li>\n", html.EscapeString(e.Name()), suffix)
	}
	body.WriteString("</ul>\n")
	return s.writePage(address, front{Title: name, URL: "/" + address, Dir: name, Source: name, NoContents: true}, body.String())
}
