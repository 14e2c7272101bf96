package dropin

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNoSource is that the sources of the library are nowhere to be found.
var ErrNoSource = errors.New("the sources of the library are not here: run this in a checkout of Weft, or name one with --source (git clone https://github.com/weft-rdma/weft)")

// FindSource returns the root of the repository: the folder that was named, or the one
// that holds one of the places, or the place itself.
func FindSource(named string, places ...string) (string, error) {
	if named != "" {
		if !isSource(named) {
			return "", fmt.Errorf("%s is not a checkout of Weft: it has no dropin/go.mod", named)
		}
		return filepath.Abs(named)
	}
	for _, place := range places {
		for dir := place; dir != ""; dir = parent(dir) {
			if isSource(dir) {
				return dir, nil
			}
		}
	}
	return "", ErrNoSource
}

// parent is the folder of a folder, or empty at the root.
func parent(dir string) string {
	if up := filepath.Dir(dir); up != dir {
		return up
	}
	return ""
}

func isSource(dir string) bool {
	mod, err := os.ReadFile(filepath.Join(dir, "dropin", "go.mod"))
	return err == nil && strings.HasPrefix(string(mod), "module github.com/weft-rdma/weft/dropin\n")
}

// fingerprint tells what the library is made of apart: states of the sources, by the
// names, sizes and times of the files, and what the compilers are asked for.
func fingerprint(source string) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, runtime.Version(), runtime.GOARCH)
	for _, name := range []string{"GOARCH", "CC", "CFLAGS", "GOFLAGS"} {
		fmt.Fprintf(h, "%s=%s\n", name, os.Getenv(name))
	}
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != source && skipped(d.Name()) {
			return filepath.SkipDir
		}
		if !d.Type().IsRegular() || !isPart(d.Name()) {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	return fmt.Sprintf("%x", h.Sum(nil)[:12]), err
}

// skipped are folders that the library has nothing of.
func skipped(name string) bool {
	switch name {
	case "cmd", "bench", "interop", "nfs", "conformance", "docs", "testdata":
		return true
	}
	return strings.HasPrefix(name, ".")
}

func isPart(name string) bool {
	switch filepath.Ext(name) {
	case ".go":
		return !strings.HasSuffix(name, "_test.go")
	case ".c", ".h", ".map", ".s", ".mod", ".sum":
		return true
	}
	return false
}
