// Whether go test runs a function, and runs it to its end.

package conformance

import (
	"go/ast"
	"go/doc"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// notRun returns why go test would not run fn, of the named file, to its end; it is empty
// if it would.
func (s *scanner) notRun(name string, f *ast.File, fn *ast.FuncDecl) string {
	id := fn.Name.Name
	switch {
	case fn.Recv != nil:
		return "the claim is on a method: go test runs functions only"
	case fn.Body == nil || len(fn.Body.List) == 0:
		return id + " has no body"
	case testName(id, "Test"):
		if !takesPointer(fn, "T") {
			return id + " does not take a *testing.T"
		}
		if skips(fn) {
			return id + " always skips"
		}
	case testName(id, "Fuzz"):
		if !takesPointer(fn, "F") {
			return id + " does not take a *testing.F"
		}
		if skips(fn) {
			return id + " always skips"
		}
		if !s.seeded(name, fn) {
			return id + " has no seeds: go test runs a fuzz target on its seeds only"
		}
	case testName(id, "Example"):
		for _, e := range doc.Examples(f) {
			if "Example"+e.Name == id && (e.Output != "" || e.EmptyOutput) {
				return ""
			}
		}
		return id + " has no // Output: comment: go test compiles such an example and does not run it"
	default:
		return id + " is not a test: the claim belongs on a Test, Fuzz or Example function"
	}
	return ""
}

// testName reports whether the go command takes id for a test of the kind prefix: what
// follows the prefix, if anything, must not begin with a small letter.
func testName(id, prefix string) bool {
	rest, ok := strings.CutPrefix(id, prefix)
	if !ok {
		return false
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return rest == "" || !unicode.IsLower(r)
}

// takesPointer reports whether fn's one parameter is a *testing.<kind>.
func takesPointer(fn *ast.FuncDecl, kind string) bool {
	if fn.Type.TypeParams != nil || fn.Type.Results != nil || fn.Type.Params.NumFields() != 1 {
		return false
	}
	star, ok := fn.Type.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	sel, ok := star.X.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == kind
}

// skips reports whether fn always skips.
func skips(fn *ast.FuncDecl) bool {
	for _, stmt := range fn.Body.List {
		if e, ok := stmt.(*ast.ExprStmt); ok {
			switch method(e.X) {
			case "Skip", "Skipf", "SkipNow":
				return true
			}
		}
	}
	return false
}

// method returns the name of the method, or of the function of a package, that e calls;
// empty if e is no such call.
func method(e ast.Node) string {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return ""
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	return sel.Sel.Name
}

// seeded reports whether the fuzz target adds seeds, itself or through a helper that gets
// its *testing.F, or has seeds in testdata/fuzz.
func (s *scanner) seeded(name string, fn *ast.FuncDecl) bool {
	corpus := path.Join(path.Dir(name), "testdata", "fuzz", fn.Name.Name)
	if entries, err := fs.ReadDir(s.fsys, corpus); err == nil && len(entries) > 0 {
		return true
	}
	self := ""
	if names := fn.Type.Params.List[0].Names; len(names) == 1 {
		self = names[0].Name
	}
	found := false
	ast.Inspect(fn.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if method(call) == "Add" {
			found = true
		}
		for _, arg := range call.Args {
			if id, ok := arg.(*ast.Ident); ok && id.Name == self {
				found = true
			}
		}
		return true
	})
	return found
}

// open opens a file of the scanned tree, for go/build to read its build constraints.
func (s *scanner) open(name string) (io.ReadCloser, error) { return s.fsys.Open(name) }
