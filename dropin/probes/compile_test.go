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

// compile compiles a probe from sources, and from what it is linked with.
func compile(t *testing.T, args ...string) (program string) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	program = filepath.Join(t.TempDir(), "probe")
	flags := []string{cc, "-std=gnu11", "-D_GNU_SOURCE", "-g", "-Wall", "-Wextra", "-Werror", "-o", program}
	said(t, "", append(append(flags, args...), "-pthread", "-ldl")...)
	return program
}

// linked compiles testdata/NAME.c and links it with the library.
func linked(t *testing.T, library, name string, flags ...string) (program string) {
	t.Helper()
	return compile(t, append(flags, filepath.Join("testdata", name+".c"), filepath.Join(library, "libibverbs.so.1"))...)
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
