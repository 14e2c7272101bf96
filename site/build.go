// This file makes the site, in these steps:
//
//  1. Every page gets its address: documents, sections of README.md, Go packages.
//  2. Files that documents link to get pages, too, with their source.
//  3. Pages are written as content for Hugo, and a table with the address of every link.
//  4. Hugo renders them. A link that is not in the table becomes one of the scheme dead.
//  5. The links of the result are checked.

package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/gohugoio/hugo/commands"
)

//go:embed all:hugo
var theme embed.FS

// A Site is what is known of the site while it is made.
type Site struct {
	repo fs.FS
	work string // Hugo's directory

	// addresses holds, by what a document links to, the address in the site. Keys are
	// paths of the repository, with # and an anchor if that decides.
	addresses map[string]string

	packages []*Package
}

// Build makes the site of a repository in the directory out, and checks it.
func Build(repo fs.FS, out string) error {
	work, err := os.MkdirTemp("", "weft-site-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := os.CopyFS(work, must(fs.Sub(theme, "hugo"))); err != nil {
		return err
	}
	s := &Site{repo: repo, work: work, addresses: make(map[string]string)}
	if err := s.fill(); err != nil {
		return err
	}
	out, err = filepath.Abs(out)
	if err != nil {
		return err
	}
	err = commands.Execute([]string{"--source", work, "--destination", out, "--cacheDir", filepath.Join(work, "cache"),
		"--cleanDestinationDir", "--noBuildLock", "--panicOnWarning", "--quiet"})
	if err != nil {
		return err
	}
	return Check(os.DirFS(out))
}

// fill writes all that Hugo needs.
func (s *Site) fill() error {
	documents, err := s.documents()
	if err != nil {
		return err
	}
	if s.packages, err = readPackages(s.repo); err != nil {
		return err
	}
	for _, p := range s.packages {
		s.addresses[p.Dir] = p.address()
	}
	for _, d := range documents {
		d.claim(s.addresses)
	}
	steps := []func() error{
		func() error { return s.writeDocuments(documents) },
		s.writePackages,
		func() error { return s.writeSources(documents) },
		func() error { return s.writeRows(documents) },
		s.writeColors,
		s.writeAddresses,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// writeAddresses writes the table that the templates look links up in.
func (s *Site) writeAddresses() error {
	text, err := json.Marshal(s.addresses)
	if err != nil {
		return err
	}
	return s.write("data/addresses.json", string(text))
}

// front is the front matter of a page.
type front struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	URL         string `json:"url"`
	Layout      string `json:"layout,omitempty"`
	Dir         string `json:"dir"`    // of the repository, where relative links begin
	Source      string `json:"source"` // path of the repository
	Section     string `json:"part,omitempty"`
	NoContents  bool   `json:"nocontents,omitempty"`
}

// writePage writes a page of Hugo's content, in Markdown or HTML by its extension.
func (s *Site) writePage(name string, f front, body string) error {
	head, err := json.MarshalIndent(f, "", " ")
	if err != nil {
		return err
	}
	if path.Ext(name) == ".html" {
		body = strings.ReplaceAll(body, "{{", "&#123;&#123;") // no shortcodes of Hugo
	}
	return s.write(path.Join("content", name), string(head)+"\n\n"+body)
}

func (s *Site) write(name, text string) error {
	name = filepath.Join(s.work, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o666)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(fmt.Sprint("cannot happen: ", err))
	}
	return v
}
