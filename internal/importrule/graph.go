// The import graph of a module, read from the source: every file counts, whatever
// platform it is for, so that the answer is the same everywhere.

package importrule

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// An edge is one import of one file.
type edge struct {
	path string // as the import says it
	file string // below the module's root, with the line: a/b.go:7
}

// A Graph holds what the packages of a module import. A package is named by
// its directory below the module's root, "." for the root.
type Graph struct {
	module string
	code   map[string][]edge // by package, without its tests
	tests  map[string][]edge // by package, its tests only
}

// Read reads the module in fsys, without the directories that the go command ignores and
// without modules of their own.
func Read(fsys fs.FS) (*Graph, error) {
	module, err := moduleName(fsys)
	if err != nil {
		return nil, err
	}
	g := &Graph{module: module, code: make(map[string][]edge), tests: make(map[string][]edge)}
	err = fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		base := d.Name()
		hidden := strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
		if d.IsDir() {
			_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
			if hidden || base == "testdata" || base == "vendor" || err == nil {
				return fs.SkipDir
			}
			return nil
		}
		if hidden || path.Ext(base) != ".go" {
			return nil
		}
		return g.readFile(fsys, name)
	})
	return g, err
}

func moduleName(fsys fs.FS) (string, error) {
	text, err := fs.ReadFile(fsys, "go.mod")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", fmt.Errorf("go.mod names no module")
}

func (g *Graph) readFile(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, src, parser.ImportsOnly)
	if err != nil {
		return err
	}
	pkg, into := path.Dir(name), g.code
	if strings.HasSuffix(name, "_test.go") {
		into = g.tests
	}
	if _, ok := into[pkg]; !ok {
		into[pkg] = nil
	}
	for _, spec := range f.Imports {
		p, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		at := fmt.Sprintf("%s:%d", name, files.Position(spec.Pos()).Line)
		into[pkg] = append(into[pkg], edge{path: p, file: at})
	}
	return nil
}

// packages returns the packages that have code or tests, sorted.
func (g *Graph) packages() []string {
	var names []string
	for p := range g.code {
		names = append(names, p)
	}
	for p := range g.tests {
		names = append(names, p)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// local returns the name of a package of this module by its import path, and the
// empty string for others.
func (g *Graph) local(importPath string) string {
	if importPath == g.module {
		return "."
	}
	if name, ok := strings.CutPrefix(importPath, g.module+"/"); ok {
		return name
	}
	return ""
}

// A reach is something that a package imports, by itself or through helpers.
type reach struct {
	path string
	via  []string // the helpers between
	file string   // of the last import on the way
}

// reaches returns what pkg imports. A helper, which is a package of this
// module that is no layer, is looked through: what it imports counts as
// imported by pkg, so that a rule cannot be passed by way of it.
func (g *Graph) reaches(pkg string, helper func(pkg string) bool) []reach {
	var (
		all  []reach
		seen = map[string]bool{pkg: true}
	)
	var from func(p string, via []string)
	from = func(p string, via []string) {
		for _, e := range g.code[p] {
			all = append(all, reach{path: e.path, via: via, file: e.file})
			if q := g.local(e.path); helper(q) && !seen[q] {
				seen[q] = true
				from(q, append(slices.Clone(via), q))
			}
		}
	}
	from(pkg, nil)
	return all
}

// Links returns the packages of this module that pkg is linked with.
func (g *Graph) Links(pkg string) []string {
	var all []string
	for _, r := range g.reaches(pkg, func(q string) bool { return q != "" }) {
		if q := g.local(r.path); q != "" {
			all = append(all, q)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
