// Claims: which test guards which rows. They are read from the source, so they do not
// depend on which tests are run.

package conformance

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// claimPrefix begins a line of claims in a doc comment.
const claimPrefix = "Claims:"

// A Claim is one row that one test claims to guard.
type Claim struct {
	ID   string
	Test string // package below the module's root and function: mpa.TestX

	// Module is empty for tests that "go test ./..." runs. For tests of a module of
	// its own (interop) it is the directory: such claims are listed, and do not count.
	Module string

	File  string // below the root of the scanned module, with slashes
	Place string // file:line, for messages
}

// A Problem is something that an audit found wrong.
type Problem struct {
	Place string // file:line, or empty for a row without a test
	Text  string
}

func (p Problem) String() string {
	if p.Place == "" {
		return p.Text
	}
	return p.Place + ": " + p.Text
}

// Root returns the directory of the module that holds dir: the nearest one
// upwards with a go.mod.
func Root(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for d := abs; ; d = filepath.Dir(d) {
		if _, err := os.Stat(filepath.Join(d, "go.mod")); err == nil {
			return d, nil
		}
		if d == filepath.Dir(d) {
			return "", fmt.Errorf("no go.mod in %s or above it", abs)
		}
	}
}

// Claims returns the claims in all test files below the root of a module. Claims where go
// test would not run them are problems.
func Claims(root string) ([]Claim, []Problem, error) {
	s := scanner{fsys: os.DirFS(root), files: token.NewFileSet()}
	if err := s.directory(".", ""); err != nil {
		return nil, nil, fmt.Errorf("reading the claims below %s: %w", root, err)
	}
	return s.claims, s.problems, nil
}

type scanner struct {
	fsys     fs.FS
	files    *token.FileSet
	claims   []Claim
	problems []Problem
}

// directory reads dir, which belongs to the named module, and the directories below it, except
// those that the go command ignores: testdata, vendor, and names that begin with a dot or
// an underscore.
func (s *scanner) directory(dir, module string) error {
	entries, err := fs.ReadDir(s.fsys, dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_"):
		case e.IsDir():
			if e.Name() == "testdata" || e.Name() == "vendor" {
				continue
			}
			inner := module
			if _, err := fs.Stat(s.fsys, path.Join(name, "go.mod")); err == nil {
				inner = name
			}
			if err := s.directory(name, inner); err != nil {
				return err
			}
		case strings.HasSuffix(e.Name(), "_test.go"):
			if err := s.file(name, module); err != nil {
				return err
			}
		}
	}
	return nil
}

// target is the platform whose tests count: the one on which all of Weft's tests run. An
// audit must not depend on where it is made.
var target = build.Context{
	GOOS:        "linux",
	GOARCH:      "amd64",
	Compiler:    "gc",
	CgoEnabled:  true,
	ReleaseTags: build.Default.ReleaseTags,
	JoinPath:    path.Join,
}

func (s *scanner) file(name, module string) error {
	src, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(s.files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ctx := target
	ctx.OpenFile = s.open
	built, err := ctx.MatchFile(path.Dir(name), path.Base(name))
	if err != nil {
		return err
	}

	docs := make(map[*ast.CommentGroup]*ast.FuncDecl)
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Doc != nil {
			docs[fn.Doc] = fn
		}
	}
	for _, group := range f.Comments {
		ids, fault := parseClaims(group.Text())
		if len(ids) == 0 && fault == "" {
			continue
		}
		place := s.place(group)
		fn := docs[group]
		switch {
		case fault != "":
		case fn == nil:
			fault = "the claim is not in the doc comment of a test"
		case !built:
			fault = "the claim is in a file that is not built for tests on linux/amd64"
		default:
			fault = s.notRun(name, f, fn)
		}
		if fault != "" {
			s.problems = append(s.problems, Problem{place, fault})
			continue
		}
		test := packageOf(name, f) + "." + fn.Name.Name
		for _, id := range ids {
			s.claims = append(s.claims, Claim{ID: id, Test: test, Module: module, File: name, Place: place})
		}
	}
	return nil
}

// packageOf returns the name of a test file's package: its directory, or at the module's
// root the package's own name.
func packageOf(name string, f *ast.File) string {
	if dir := path.Dir(name); dir != "." {
		return dir
	}
	return strings.TrimSuffix(f.Name.Name, "_test")
}

func (s *scanner) place(n ast.Node) string {
	p := s.files.Position(n.Pos())
	return fmt.Sprintf("%s:%d", p.Filename, p.Line)
}

// parseClaims returns the ids in the claim lines of a comment. Claim lines have to be the
// last ones, so that an id on a line of its own is not lost.
func parseClaims(comment string) (ids []string, fault string) {
	claiming := false
	for line := range strings.Lines(comment) {
		line = strings.TrimSpace(line)
		list, ok := strings.CutPrefix(line, claimPrefix)
		if !ok {
			if claiming && line != "" {
				return nil, fmt.Sprintf("%q follows the claims: every line of claims begins with %q, and they are the last lines", line, claimPrefix)
			}
			continue
		}
		claiming = true
		named := strings.FieldsFunc(list, func(r rune) bool { return r == ' ' || r == '\t' || r == ',' })
		if len(named) == 0 {
			return nil, "the claim names no requirement"
		}
		ids = append(ids, named...)
	}
	return ids, ""
}
