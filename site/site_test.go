package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
)

// The site of this repository is made, and no link of it is dead: Build checks that.
func TestTheSiteOfThisRepositoryIsMade(t *testing.T) {
	out := t.TempDir()
	if err := Build(os.DirFS(".."), out); err != nil {
		t.Fatal(err)
	}
	site := os.DirFS(out)
	for name, has := range map[string]string{
		"index.html":                         `docs/tls.html">`,
		"start.html":                         `id="try-it"`,
		"files.html":                         "weft serve",
		"docs/programs.html":                 "<h1>",
		"docs/operate.html":                  `grafana.json">`,
		"docs/performance.html":              "performance-bandwidth.svg",
		"docs/conformance.html":              `id="search"`,
		"docs/conformance/mpa.html":          `id="MPA-4.1-1"`,
		"docs/conformance/rpcrdma-8166.html": `id="P8166-4.5-4"`,
		"api.html":                           `api/verbs.html">`,
		"api/verbs.html":                     `id="QP.PostSend"`,
		"api/cm.html":                        `id="Params.PrivateData"`,
	} {
		if text := string(must(fs.ReadFile(site, name))); !strings.Contains(text, has) {
			t.Errorf("%s does not have %s", name, has)
		}
	}
}

// The search has every row of the tables.
func TestEveryRowCanBeFound(t *testing.T) {
	repo := os.DirFS("..")
	for _, name := range must(fs.Glob(repo, "docs/conformance/*.md")) {
		table, _, _ := strings.Cut(string(must(fs.ReadFile(repo, name))), "\n## Exclusions")
		_, table, _ = strings.Cut(table, "\n|---|")
		want := strings.Count(table, "\n| ")
		if got := len(rowLine.FindAllString(table, -1)); got != want || got == 0 {
			t.Errorf("%s: %d of %d rows are found", name, got, want)
		}
	}
}

// A row names its tests, and the links lead to their lines.
func TestTestsAreLinkedByTheLine(t *testing.T) {
	out := t.TempDir()
	if err := Build(small(), out); err != nil {
		t.Fatal(err)
	}
	page := string(must(os.ReadFile(filepath.Join(out, "docs/conformance/mpa.html"))))
	if want := `href="../../source/mpa/a_test.go.html#L3"`; !strings.Contains(page, want) {
		t.Errorf("%s is not in\n%s", want, page)
	}
	text := string(must(os.ReadFile(filepath.Join(out, "docs/rows.js"))))
	var rows [][]any
	if err := json.Unmarshal([]byte(strings.Trim(text, "const frmaeRw=;\n")), &rows); err != nil {
		t.Fatal(err, text)
	}
	if len(rows) != 1 || rows[0][0] != "MPA-1-1" || rows[0][5] != 1.0 {
		t.Errorf("the rows to search are %v", rows)
	}
}

func TestALinkOfADocumentThatLeadsNowhereFails(t *testing.T) {
	for _, link := range []string{"docs/missing.md", "docs/conformance.md#missing", "#missing", "missing/"} {
		repo := small()
		repo["README.md"] = &fstest.MapFile{Data: []byte("# Weft\n\nSee [this](" + link + ").\n")}
		err := Build(repo, t.TempDir())
		if err == nil || !strings.Contains(err.Error(), strings.TrimRight(link, "/")) {
			t.Errorf("%s: the error is %v", link, err)
		}
	}
}

// small returns a repository with one of each.
func small() fstest.MapFS {
	files := fstest.MapFS{}
	for name, text := range map[string]string{
		"README.md":               "# Weft\n\nA RNIC: [conformance](docs/conformance.md), [mpa](mpa).\n",
		"doc.go":                  "// Package weft is a RNIC.\npackage weft\n",
		"mpa/mpa.go":              "// Package mpa frames.\npackage mpa\n",
		"mpa/a_test.go":           "package mpa\n\nfunc TestA(t *testing.T) {}\n",
		"docs/README.md":          "# Pages\n",
		"docs/programs.md":        "# Programs\n",
		"docs/operate.md":         "# Operate\n",
		"docs/performance.md":     "# Performance\n",
		"docs/conformance.md":     "# Conformance\n\n[MPA](conformance/mpa.md)\n",
		"docs/conformance/mpa.md": "# MPA\n\n| row | § | level | requirement | tests |\n|---|---|---|---|---|\n| MPA-1-1 | 1 | MUST | Frames. | [`mpa.TestA`](../../mpa/a_test.go) | |\n",
	} {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// Each section of README.md is on exactly one page, and the pages that are named exist.
func TestEverySectionOfTheReadmeIsOnOnePage(t *testing.T) {
	text := string(must(os.ReadFile("../README.md")))
	readme, err := parseDocument("README.md", text)
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, d := range divide(readme) {
		if strings.TrimSpace(d.Body) == "" {
			t.Errorf("%s is empty", d.Address)
		}
		all += d.Body
	}
	for _, m := range regexp.MustCompile(`(?m)^.+$`).FindAllString(fenced.ReplaceAllString(readme.Body, ""), -1) {
		if !strings.Contains(all, m) && !strings.HasPrefix(m, "## ") {
			t.Errorf("no page has the line %q", m)
		}
	}
}

func TestTheCheckFindsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct{ body, want string }{
		"no page":         {`<a href="b.html">`, "a.html: link to b.html"},
		"no anchor":       {`<a href="#b">`, "no element with this id"},
		"no anchor there": {`<a href="c/d.html#b">`, "no element with this id"},
		"directory":       {`<a href="c">`, "directory"},
		"absolute":        {`<a href="/c/d.html">`, "absolute"},
		"plain http":      {`<a href="http://example.org">`, "neither"},
		"no picture":      {`<img src="x.png">`, "loads x.png"},
		"script":          {`<script src="https://example.org/x.js"></script>`, "another host"},
		"style":           {`<link rel=stylesheet href="//example.org/x.css">`, "another host"},
		"twice":           {`<p id=a><p id=a>`, "two elements have the id a"},
		"fine":            {`<p id=a><a href="#a"></a><a href="c/d.html#e"></a><a href="https://example.org"></a><img src="y.png">`, ""},
	} {
		site := fstest.MapFS{"a.html": {Data: []byte(c.body)}, "c/d.html": {Data: []byte(`<p id=e>`)}, "y.png": {}}
		err := Check(site)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: the error is %v, not %q", name, err, c.want)
		}
	}
}
