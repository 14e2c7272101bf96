package weft_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

var (
	markdownLink    = regexp.MustCompile(`\]\(([^)\s#]*)(?:#([^)\s]*))?\)`)
	markdownHeading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	markdownID      = regexp.MustCompile(`<a id="([^"]*)">`)
	codeBlock       = regexp.MustCompile("(?ms)^```.*?^```$|^    .*?$|`[^`\n]*`")
	notInAnchors    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns what links into a page may name: its headings as hosting platforms
// spell them, and its own ids.
func anchors(page string) map[string]bool {
	all := make(map[string]bool)
	for _, m := range markdownHeading.FindAllStringSubmatch(page, -1) {
		all[strings.ReplaceAll(notInAnchors.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	for _, m := range markdownID.FindAllStringSubmatch(page, -1) {
		all[m[1]] = true
	}
	return all
}

// Every relative link of every page leads to a file or a directory of the repository, and
// to a heading where it names one.
func TestTheLinksOfTheDocumentsLeadToFiles(t *testing.T) {
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if d.IsDir() && (d.Name() == "testdata" || name != "." && strings.HasPrefix(d.Name(), ".")) {
			return fs.SkipDir
		}
		if err != nil || path.Ext(name) != ".md" {
			return err
		}
		text, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		for _, m := range markdownLink.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
			checkLink(t, root, name, m[1], m[2])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkLink(t *testing.T, root fs.FS, page, link, anchor string) {
	if strings.Contains(link, ":") {
		return // elsewhere
	}
	to := page
	if link != "" {
		to = path.Join(path.Dir(page), link)
	}
	if _, err := fs.Stat(root, to); err != nil {
		t.Errorf("%s: the link to %s leads nowhere: %v", page, link, err)
		return
	}
	if anchor == "" || path.Ext(to) != ".md" {
		return
	}
	text, err := fs.ReadFile(root, to)
	if err != nil {
		t.Error(err)
	}
	if !anchors(string(text))[anchor] {
		t.Errorf("%s: %s has no heading for the link to #%s", page, to, anchor)
	}
}
