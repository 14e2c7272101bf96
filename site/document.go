// This file is about documents in Markdown: which there are, what README.md is divided
// into, and which addresses they have.

package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A Document is a page in Markdown: a file, or some sections of README.md.
type Document struct {
	Path    string // in the repository
	Address string // in the site
	Title   string
	Body    string // without the title
}

var (
	heading   = regexp.MustCompile(`(?m)^#+ +(.*)$`)
	ownAnchor = regexp.MustCompile(`<a id="([^"]*)">`)
	fenced    = regexp.MustCompile("(?ms)^```.*?^```$")
	code      = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$|`[^`\n]*`")
	link      = regexp.MustCompile(`\]\(([^)\s#]*)(?:#[^)\s]*)?\)`)
	notInID   = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	opening   = regexp.MustCompile(`(?s)\A\s*<!--.*?-->\s*`)
	title     = regexp.MustCompile(`\A# +(.*)\n`)
)

// readmePages says which sections of README.md are pages of their own. All others are on
// the first page.
var readmePages = []struct {
	address, title string
	sections       []string
}{
	{"start.html", "Start", []string{"Try it", "Run your RDMA program", "A first program"}},
	{"files.html", "Files over RDMA", []string{"Files over RDMA"}},
}

// documents returns the documents of the repository.
func (s *Site) documents() ([]*Document, error) {
	var all []*Document
	err := fs.WalkDir(s.repo, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if d.IsDir() || path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(s.repo, name)
		if err != nil {
			return err
		}
		doc, err := parseDocument(name, strings.ReplaceAll(string(text), "\r\n", "\n"))
		if err != nil {
			return err
		}
		if name == "README.md" {
			all = append(all, divide(doc)...)
		} else {
			all = append(all, doc)
		}
		return nil
	})
	return all, err
}

// parseDocument takes the title off a document, which the templates write.
func parseDocument(name, text string) (*Document, error) {
	text = opening.ReplaceAllString(text, "")
	m := title.FindStringSubmatch(text)
	if m == nil {
		return nil, fmt.Errorf("%s does not begin with a title", name)
	}
	address := strings.TrimSuffix(name, ".md") + ".html"
	switch dir := path.Dir(name); {
	case name == "README.md":
		address = "index.html"
	case path.Base(name) == "README.md":
		address = dir + ".html"
	}
	return &Document{Path: name, Address: address, Title: m[1], Body: text[len(m[0]):]}, nil
}

// divide makes the pages of README.md.
func divide(readme *Document) []*Document {
	first := &Document{Path: readme.Path, Address: readme.Address, Title: readme.Title}
	all := []*Document{first}
	for _, p := range readmePages {
		all = append(all, &Document{Path: readme.Path, Address: p.address, Title: p.title})
	}
	for _, section := range sections(readme.Body) {
		into := first
		for i, p := range readmePages {
			if slices.Contains(p.sections, sectionTitle(section)) {
				into = all[i+1]
			}
		}
		if sectionTitle(section) == into.Title { // once is enough
			_, section, _ = strings.Cut(section, "\n")
		}
		into.Body += section
	}
	return all
}

// sections splits a body before every heading of level two.
func sections(body string) []string {
	// Lines of code may look like headings.
	masked := fenced.ReplaceAllStringFunc(body, func(s string) string { return strings.Repeat(" ", len(s)) })
	var all []string
	begin := 0
	for _, at := range regexp.MustCompile(`(?m)^## `).FindAllStringIndex(masked, -1) {
		all = append(all, body[begin:at[0]])
		begin = at[0]
	}
	return append(all, body[begin:])
}

func sectionTitle(section string) string {
	line, _, _ := strings.Cut(section, "\n")
	title, _ := strings.CutPrefix(line, "## ")
	return title
}

// anchors returns what links into the document may name.
func (d *Document) anchors() []string {
	var all []string
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(d.Body, ""), -1) {
		all = append(all, strings.ReplaceAll(notInID.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	for _, m := range ownAnchor.FindAllStringSubmatch(d.Body, -1) {
		all = append(all, m[1])
	}
	return all
}

// claim notes the addresses of the document: its path and its anchors.
func (d *Document) claim(addresses map[string]string) {
	if _, ok := addresses[d.Path]; !ok {
		addresses[d.Path] = d.Address
	}
	for _, a := range d.anchors() {
		addresses[d.Path+"#"+a] = d.Address + "#" + a
	}
	if path.Base(d.Path) == "README.md" && path.Dir(d.Path) != "." {
		addresses[path.Dir(d.Path)] = d.Address
	}
}

// links returns the paths of the repository that the document links to.
func (d *Document) links() []string {
	var all []string
	for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(d.Body, ""), -1) {
		if m[1] != "" && !strings.Contains(m[1], ":") {
			all = append(all, path.Join(path.Dir(d.Path), m[1]))
		}
	}
	return all
}

func (s *Site) writeDocuments(all []*Document) error {
	for _, d := range all {
		f := front{Title: d.Title, URL: "/" + d.Address, Dir: path.Dir(d.Path), Source: d.Path}
		name := strings.TrimSuffix(d.Address, ".html") + ".md"
		switch d.Address {
		case "index.html":
			name, f.NoContents = "_index.md", true
		case "docs/conformance.html":
			f.Layout = "conformance"
		}
		if err := s.writePage(name, f, d.Body); err != nil {
			return err
		}
	}
	return nil
}
