// Package probes tests what a program may do to the library that runs in it;
// testdata/probe.c
// does it.
package probes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// built builds the library and the probes, and returns the folder of the one and the
// program.
func built(t *testing.T) (library, program string) {
	t.Helper()
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	root := strings.TrimSpace(command(t, "", "go", "list", "-m", "-f", "{{.Dir}}", "github.com/weft-rdma/weft"))
	library = strings.TrimSpace(command(t, root, "go", "run", "./cmd/weft", "run", "--build", "--source", root))
	program = filepath.Join(t.TempDir(), "probe")
	command(t, "", cc, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-o", program, filepath.Join("testdata", "probe.c"),
		filepath.Join(library, "libibverbs.so.1"), "-pthread", "-ldl")
	return library, program
}

func command(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		said := ""
		if e, ok := err.(*exec.ExitError); ok {
			said = string(e.Stderr)
		}
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return string(out)
}

func TestProgramsMayDoWhatTheyLike(t *testing.T) {
	library, program := built(t)
	for _, probe := range []string{"fork", "signals", "unmap", "threads", "exec", "dlopen"} {
		t.Run(probe, func(t *testing.T) {
			cmd := exec.Command(program, probe)
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_PERSONA=rc")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
