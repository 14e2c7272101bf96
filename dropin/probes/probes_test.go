// Package probes tests what programs may do to the library that runs in them: they fork,
// use threads and signals, unmap what they have registered, and end as they like. The
// probes are programs in C, in testdata; each begins with what it is about.
package probes

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// limit is for one probe, on a machine that is slow.
const limit = 3 * time.Minute

// sources are the files of a program.
func sources(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v, %v", pattern, files, err)
	}
	return files
}

// probe runs all probes of a program.
func probe(t *testing.T, library, program string) {
	t.Helper()
	for _, name := range strings.Fields(said(t, "", program)) {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, name)
			cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+library, "WEFT_PERSONA=rc")
			cmd.WaitDelay = time.Second // children of the probe may have its output open
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if bytes.Contains(out, []byte("a defect of the engine")) {
				t.Errorf("the engine panicked:\n%s", out)
			}
		})
	}
}

func TestProgramsMayDoWhatTheyLike(t *testing.T) {
	library := library(t)
	probe(t, library, compile(t, append(sources(t, "probe/*.c"), "-O1", filepath.Join(library, "libibverbs.so.1"))...))
}

func TestProgramsMayLoadTheLibrary(t *testing.T) {
	shared := []string{"-O1", filepath.Join("testdata", "probe", "main.c"), filepath.Join("testdata", "probe", "process.c")}
	probe(t, library(t), compile(t, append(shared, sources(t, "load/*.c")...)...))
}
