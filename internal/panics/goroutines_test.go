package panics_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/weft-rdma/weft/internal/importrule"
)

const engine = "dropin/engine"

// TestEveryGoroutineOfTheEngineRecovers looks at the source of the engine of `weft run`
// and of all packages that it links.
func TestEveryGoroutineOfTheEngineRecovers(t *testing.T) {
	root := os.DirFS("../..")
	g, err := importrule.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	packages := []string{engine}
	for _, p := range imports(t, root, engine) {
		packages = append(packages, p)
		packages = append(packages, g.Links(p)...)
	}
	slices.Sort(packages)
	packages = slices.Compact(packages)
	for _, p := range []string{"cm", "verbs", "rdmap", "mpa", "mpa/internal/turns", "internal/polled"} {
		if !slices.Contains(packages, p) {
			t.Errorf("the engine does not link %s: %q", p, packages)
		}
	}
	found := 0
	for _, p := range packages {
		s := readSource(t, root, p)
		for _, line := range s.unguarded() {
			t.Error(line)
		}
		found += s.found
	}
	if found < 20 {
		t.Errorf("%d goroutines and timers were found", found)
	}
}

// imports are the packages of this module that a package imports.
func imports(t *testing.T, fsys fs.FS, pkg string) (packages []string) {
	t.Helper()
	for _, f := range readSource(t, fsys, pkg).files {
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if p, ok := strings.CutPrefix(p, "github.com/weft-rdma/weft/"); ok {
				packages = append(packages, p)
			}
		}
	}
	return packages
}

// A source is the source of a package without its tests, for all platforms.
type source struct {
	set   *token.FileSet
	files []*ast.File
	found int // goroutines, and functions that are called in one
}

func readSource(t *testing.T, fsys fs.FS, pkg string) *source {
	t.Helper()
	names, err := fs.Glob(fsys, path.Join(pkg, "*.go"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%s has no source: %v", pkg, err)
	}
	s := &source{set: token.NewFileSet()}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(s.set, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, f)
	}
	return s
}

// unguarded has a line for each goroutine that does not begin by deferring Recover.
func (s *source) unguarded() (lines []string) {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			f := runs(n)
			if f == nil {
				return true
			}
			s.found++
			if !s.recovers(f, file) {
				lines = append(lines, fmt.Sprintf("%v: the function that runs in a goroutine does not begin with defer panics.Recover()", s.set.Position(n.Pos())))
			}
			return true
		})
	}
	return lines
}

// runs is the function that a statement or call runs in another goroutine, or nil.
func runs(n ast.Node) ast.Expr {
	switch n := n.(type) {
	case *ast.GoStmt:
		return n.Call.Fun
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return nil
		}
		switch called.Sel.Name {
		case "AfterFunc":
			return n.Args[len(n.Args)-1]
		case "Go": // of a group
			if len(n.Args) == 1 {
				return n.Args[0]
			}
		}
	}
	return nil
}

// recovers reports whether a function begins with the deferral. One that has a name is
// looked for in its file first; a variable is what is assigned to it.
func (s *source) recovers(f ast.Expr, in *ast.File) bool {
	name := ""
	switch f := f.(type) {
	case *ast.FuncLit:
		return defersRecover(f.Body)
	case *ast.Ident:
		name = f.Name
	case *ast.SelectorExpr:
		name = f.Sel.Name
	default:
		return false
	}
	for _, files := range [][]*ast.File{{in}, s.files} {
		if known, ok := declared(files, name); known {
			return ok
		}
	}
	values := s.assigned(name)
	return len(values) > 0 && !slices.ContainsFunc(values, func(v ast.Expr) bool { return !s.recovers(v, in) })
}

// declared reports whether functions and methods of a name are declared, and whether all
// of them begin with the deferral.
func declared(files []*ast.File, name string) (known, all bool) {
	all = true
	for _, file := range files {
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Name.Name == name {
				known, all = true, all && defersRecover(f.Body)
			}
		}
	}
	return known, all
}

// assigned are the values that fields of a name are set to.
func (s *source) assigned(name string) (values []ast.Expr) {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			a, ok := n.(*ast.AssignStmt)
			if !ok || len(a.Lhs) != len(a.Rhs) {
				return true
			}
			for i, to := range a.Lhs {
				if field, ok := to.(*ast.SelectorExpr); ok && field.Sel.Name == name {
					values = append(values, a.Rhs[i])
				}
			}
			return true
		})
	}
	return values
}

func defersRecover(body *ast.BlockStmt) bool {
	if len(body.List) == 0 {
		return true
	}
	d, ok := body.List[0].(*ast.DeferStmt)
	if !ok {
		return false
	}
	f, ok := d.Call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	of, ok := f.X.(*ast.Ident)
	return ok && of.Name == "panics" && f.Sel.Name == "Recover"
}

// What the check finds.
func TestAGoroutineThatDoesNotRecoverIsFound(t *testing.T) {
	const guarded = "defer panics.Recover(); work()"
	for text, want := range map[string]int{
		"func f() { go func() { " + guarded + " }() }":                                                          0,
		"func f() { go func() { work() }() }":                                                                   1,
		"func f() { go func() { work(); defer panics.Recover() }() }":                                           1,
		"func f() { go func() { defer work(); defer panics.Recover() }() }":                                     1,
		"func f() { go func() { defer other.Recover() }() }":                                                    1,
		"func f() { go g() }\nfunc g() { " + guarded + " }":                                                     0,
		"func f() { go g() }\nfunc g() { work() }":                                                              1,
		"func f() { go x.g() }\nfunc (x X) g() { " + guarded + " }\nfunc (y Y) g() { work() }":                  1,
		"func f(g func()) { go g() }":                                                                           1,
		"func f() { x.fn = x.g; go x.fn() }\nfunc (x X) g() { " + guarded + " }":                                0,
		"func f() { x.fn = x.g; go x.fn() }\nfunc (x X) g() { work() }":                                         1,
		"func f() { x.fn = x.g; x.fn = h; go x.fn() }\nfunc (x X) g() { " + guarded + " }\nfunc h() { work() }": 1,
		"func f() { time.AfterFunc(d, func() { work() }) }":                                                     1,
		"func f() { time.AfterFunc(d, func() { " + guarded + " }) }":                                            0,
		"func f() { context.AfterFunc(ctx, x.g) }\nfunc (x X) g() { work() }":                                   1,
		"func f() { wg.Go(func() { work() }) }":                                                                 1,
		"func f() { go func() { " + guarded + "; go work() }() }":                                               1,
	} {
		fsys := fstest.MapFS{"p/a.go": {Data: []byte("package p\n" + text)}}
		if lines := readSource(t, fsys, "p").unguarded(); len(lines) != want {
			t.Errorf("%s\n%q, expected %d lines", text, lines, want)
		}
	}
}
