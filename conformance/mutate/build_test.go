package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/conformance"
)

// A listed package is what go list says of one.
type listed struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	ImportMap               map[string]string
}

// listPackages lists the packages in directories below root, and all that they import,
// which it has built.
func listPackages(t *testing.T, root string, directories []string) (at map[string]*listed, exports map[string]string) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,ImportMap"}
	for _, f := range directories {
		args = append(args, "./"+f)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "GOOS=linux", "GOARCH=amd64") // as the claims count
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	at, exports = make(map[string]*listed), make(map[string]string)
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); err == io.EOF {
			return at, exports
		} else if err != nil {
			t.Fatal(err)
		}
		if rel, err := filepath.Rel(root, p.Dir); err == nil {
			at[filepath.ToSlash(rel)] = p
		}
		exports[p.ImportPath] = p.Export
	}
}

// A checker type-checks mutated packages.
type checker struct {
	root    string
	files   *token.FileSet
	at      map[string]*listed
	imports types.Importer
	parsed  map[string]*ast.File
}

func newChecker(t *testing.T, root string, mutations []conformance.Mutation) *checker {
	c := &checker{root: root, files: token.NewFileSet(), parsed: make(map[string]*ast.File)}
	var directories []string
	for _, m := range mutations {
		directories = append(directories, path.Dir(m.File))
	}
	slices.Sort(directories)
	var exports map[string]string
	c.at, exports = listPackages(t, root, slices.Compact(directories))
	c.imports = importer.ForCompiler(c.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// check returns why the mutation can not be made, or what it makes can not be built.
func (c *checker) check(m *conformance.Mutation) error {
	pkg := c.at[path.Dir(m.File)]
	if pkg == nil || !slices.Contains(pkg.GoFiles, path.Base(m.File)) {
		return fmt.Errorf("%s: %s is in no package on linux/amd64", m.Place, m.File)
	}
	var files []*ast.File
	for _, name := range pkg.GoFiles {
		f, err := c.parse(filepath.Join(pkg.Dir, name), name == path.Base(m.File), m)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	var errs []error
	cfg := types.Config{Importer: c.imports, Sizes: types.SizesFor("gc", "amd64"), Error: func(err error) { errs = append(errs, err) }}
	cfg.Check(pkg.ImportPath, c.files, files, nil)
	if len(errs) > 0 {
		return fmt.Errorf("%s: the mutated source does not build: %w", m.Place, errors.Join(errs...))
	}
	return nil
}

func (c *checker) parse(name string, mutated bool, m *conformance.Mutation) (*ast.File, error) {
	if f := c.parsed[name]; f != nil && !mutated {
		return f, nil
	}
	src, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	if mutated {
		if src, err = m.Apply(bytes.ReplaceAll(src, []byte("\r\n"), []byte("\n"))); err != nil {
			return nil, err
		}
		return parser.ParseFile(c.files, name, src, parser.SkipObjectResolution)
	}
	c.parsed[name], err = parser.ParseFile(c.files, name, src, parser.SkipObjectResolution)
	return c.parsed[name], err
}

// Every mutation still applies to the source, and what it makes builds.
func TestMutationsApplyAndBuild(t *testing.T) {
	root, err := conformance.Root(".")
	if err != nil {
		t.Fatal(err)
	}
	mutations, err := conformance.Mutations()
	if err != nil {
		t.Fatal(err)
	}
	c := newChecker(t, root, mutations)
	for i := range mutations {
		if err := c.check(&mutations[i]); err != nil {
			t.Error(err)
		}
	}
}
