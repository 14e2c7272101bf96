package probes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// library builds the library, if it is not built, and returns its folder.
func library(t *testing.T) string {
	t.Helper()
	root := said(t, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weft-rdma/weft")
	return said(t, root, "go", "run", "./cmd/weft", "run", "--build", "--source", root)
}

// compile compiles testdata/NAME.c and links it with the library.
func compile(t *testing.T, library, name string, flags ...string) (program string) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	program = filepath.Join(t.TempDir(), name)
	args := append([]string{cc, "-std=gnu11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror"}, flags...)
	said(t, "", append(args, "-o", program, filepath.Join("testdata", name+".c"), filepath.Join(library, "libibverbs.so.1"), "-ldl")...)
	return program
}

// said returns what a command says on standard output.
func said(t *testing.T, dir string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
