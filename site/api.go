// This file makes the pages of the Go packages, from their doc comments and examples.

package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"go/ast"
	"go/build/constraint"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/printer"
	"go/token"
	"html/template"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// module is that of the repository.
const module = "github.com/weft-rdma/weft"

//go:embed package.tmpl
var packageText string

// A Package is a public package of the module.
type Package struct {
	*doc.Package
	Dir  string // in the repository; "." is the module's root
	fset *token.FileSet
}

func (p *Package) address() string {
	return path.Join("api", p.Dir) + ".html" // the root's is api.html
}

// readPackages reads the packages that other modules can import.
func readPackages(repo fs.FS) ([]*Package, error) {
	var all []*Package
	err := fs.WalkDir(repo, ".", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if dir != "." && !public(repo, dir) {
			return fs.SkipDir
		}
		p, err := readPackage(repo, dir)
		if p != nil {
			all = append(all, p)
		}
		return err
	})
	return all, err
}

// public reports whether a directory may hold packages for others.
func public(repo fs.FS, dir string) bool {
	name := path.Base(dir)
	_, err := fs.Stat(repo, path.Join(dir, "go.mod"))
	return err != nil && name != "internal" && name != "testdata" && name[0] != '.' && name[0] != '_'
}

// readPackage reads the package of a directory as it is on Linux, and returns nil if there is none, or
// a command.
func readPackage(repo fs.FS, dir string) (*Package, error) {
	names, err := fs.Glob(repo, path.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	p := &Package{Dir: dir, fset: token.NewFileSet()}
	var files []*ast.File
	for _, name := range names {
		text, err := fs.ReadFile(repo, name)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(p.fset, name, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if f.Name.Name == "main" {
			return nil, nil
		}
		if onLinux(name, f) {
			files = append(files, f)
		}
	}
	if len(files) == 0 || !slices.ContainsFunc(files, func(f *ast.File) bool { return !strings.HasSuffix(f.Name.Name, "_test") }) {
		return nil, nil
	}
	p.Package, err = doc.NewFromFiles(p.fset, files, path.Join(module, dir))
	return p, err
}

// onLinux reports whether a file is compiled on Linux.
func onLinux(name string, f *ast.File) bool {
	base := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test")
	for _, system := range []string{"windows", "darwin", "freebsd", "arm64", "386", "s390x"} {
		if strings.HasSuffix(base, "_"+system) {
			return false
		}
	}
	for _, group := range f.Comments {
		if group.Pos() > f.Package {
			break
		}
		for _, c := range group.List {
			if e, err := constraint.Parse(c.Text); err == nil {
				return e.Eval(func(tag string) bool {
					return tag == "linux" || tag == "unix" || tag == "amd64" || strings.HasPrefix(tag, "go1.")
				})
			}
		}
	}
	return true
}

// Overview returns the package's doc comment as HTML.
func (p *Package) Overview() template.HTML { return p.text(p.Doc, 2) }

// Text returns another doc comment as HTML.
func (p *Package) Text(text string) template.HTML { return p.text(text, 4) }

func (p *Package) text(text string, level int) template.HTML {
	printer := p.Printer()
	printer.HeadingLevel = level
	printer.DocLinkURL = func(l *comment.DocLink) string { return p.linkTo(l) }
	return template.HTML(printer.HTML(p.Parser().Parse(text)))
}

// linkTo returns the address of a name in a doc comment, relative to the page.
func (p *Package) linkTo(l *comment.DocLink) string {
	anchor := l.Name
	if l.Recv != "" {
		anchor = l.Recv + "." + l.Name
	}
	if anchor != "" {
		anchor = "#" + anchor
	}
	dir, inModule := strings.CutPrefix(l.ImportPath, module)
	switch {
	case l.ImportPath == "":
		return anchor
	case inModule:
		to := Package{Dir: cmp.Or(strings.TrimPrefix(dir, "/"), ".")}
		return strings.Repeat("../", strings.Count(p.address(), "/")) + to.address() + anchor
	}
	return "https://pkg.go.dev/" + l.ImportPath + anchor
}

// Code returns a declaration as HTML. Constants, variables, fields and methods of interfaces
// have their ids in it.
func (p *Package) Code(node any) (template.HTML, error) {
	if f, ok := node.(*ast.FuncDecl); ok {
		bare := *f
		bare.Doc, bare.Body = nil, nil
		node = &bare
	}
	var b bytes.Buffer
	if err := format.Node(&b, p.fset, node); err != nil {
		return "", err
	}
	colored, err := highlight("x.go", b.String(), false)
	if err != nil {
		return "", err
	}
	lines := strings.SplitAfter(colored, `<span class="line">`) // the first ends where the first line begins
	for line, ids := range idsByLine(b.String()) {
		for _, id := range ids {
			lines[line-1] += `<span id="` + id + `"></span>`
		}
	}
	return template.HTML(strings.Join(lines, "")), nil
}

// idsByLine returns, by line, what a declaration declares within it.
func idsByLine(text string) map[int][]string {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", "package p; "+text, parser.SkipObjectResolution)
	if err != nil {
		return nil // a function without body of a type parameter's kind, at worst without ids
	}
	all := make(map[int][]string)
	add := func(prefix string, names []*ast.Ident) {
		for _, n := range names {
			if n.IsExported() {
				line := files.Position(n.Pos()).Line
				all[line] = append(all[line], prefix+n.Name)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			add("", n.Names)
		case *ast.TypeSpec:
			for _, field := range fieldsOf(n.Type) {
				add(n.Name.Name+".", field.Names)
			}
			return false
		case *ast.FuncDecl:
			return false
		}
		return true
	})
	return all
}

func fieldsOf(t ast.Expr) []*ast.Field {
	switch t := t.(type) {
	case *ast.StructType:
		return t.Fields.List
	case *ast.InterfaceType:
		return t.Methods.List
	}
	return nil
}

// ExampleCode returns the body of an example.
func (p *Package) ExampleCode(e *doc.Example) (template.HTML, error) {
	var b bytes.Buffer
	if err := format.Node(&b, p.fset, &printer.CommentedNode{Node: e.Code, Comments: e.Comments}); err != nil {
		return "", err
	}
	text := b.String()
	if block, ok := strings.CutPrefix(text, "{\n"); ok {
		text = strings.ReplaceAll("\n"+strings.TrimSuffix(block, "}"), "\n\t", "\n")[1:]
	}
	return colored(text)
}

func colored(text string) (template.HTML, error) {
	h, err := highlight("x.go", text, false)
	return template.HTML(h), err
}

// Functions returns functions or methods in the order of their names, with what the templates
// need of the package.
func (p *Package) Functions(all []*doc.Func) []function {
	var f []function
	for _, x := range all {
		id := x.Name
		if x.Recv != "" {
			id = strings.TrimLeft(strings.TrimSuffix(x.Recv, "[T]"), "*") + "." + x.Name
		}
		f = append(f, function{Func: x, ID: id, Package: p})
	}
	return f
}

type function struct {
	*doc.Func
	ID      string
	Package *Package
	OfType  bool // has its place below a type
}

func (f function) InType() function {
	f.OfType = true
	return f
}

// ExamplesOf pairs examples with their package.
func (p *Package) ExamplesOf(all []*doc.Example) []example {
	var e []example
	for _, x := range all {
		id := "example-" + strings.Trim(strings.ReplaceAll(x.Name, "_", "-"), "-")
		if x.Name == "" {
			id = "example-package"
		}
		e = append(e, example{Example: x, ID: id, Package: p})
	}
	return e
}

type example struct {
	*doc.Example
	ID      string
	Package *Package
}

// writePackages writes a page for each package, and one that lists them.
func (s *Site) writePackages() error {
	pages, err := template.New("").Parse(packageText)
	if err != nil {
		return err
	}
	for _, p := range s.packages {
		var b strings.Builder
		name, data, title := "package", any(p), "package "+p.Name
		if p.Dir == "." {
			name, data, title = "list", map[string]any{"Root": p, "All": s.packages[1:]}, "Go API"
		}
		if err := pages.ExecuteTemplate(&b, name, data); err != nil {
			return err
		}
		f := front{Title: title, Description: p.Synopsis(p.Doc), URL: "/" + p.address(), Dir: p.Dir, Source: p.Dir, Layout: "package"}
		if err := s.writePage(p.address(), f, b.String()); err != nil {
			return err
		}
	}
	return nil
}
