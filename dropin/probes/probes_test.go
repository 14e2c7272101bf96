// Package probes tests what programs may do to the library that runs in them: they fork,
// use threads and signals, unmap what they have registered, and end as they like. The
// probes are programs in C, in testdata; each begins with what it is about.
package probes

import (
	"bytes"
	"cmp"
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

// probes are the names of a program's probes.
func probes(t *testing.T, program string) []string {
	t.Helper()
	return strings.Fields(said(t, "", program))
}

// probe runs probes of a program.
func probe(t *testing.T, library, program string, names []string, env ...string) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			cmd := exec.CommandContext(ctx, program, name)
			cmd.Env = append(os.Environ(), append(env, "LD_LIBRARY_PATH="+library, "WEFT_PERSONA=rc")...)
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
	program := compile(t, append(sources(t, "probe/*.c"), "-O1", filepath.Join(library, "libibverbs.so.1"))...)
	probe(t, library, program, probes(t, program))
}

func TestProgramsMayLoadTheLibrary(t *testing.T) {
	shared := []string{"-O1", filepath.Join("testdata", "probe", "main.c"), filepath.Join("testdata", "probe", "process.c")}
	program := compile(t, append(shared, sources(t, "load/*.c")...)...)
	probe(t, library(t), program, probes(t, program))
}

// TestTheLibraryPassesTheSanitizers runs the probes that create and destroy most on a C
// part that checks addresses and undefined behaviour, and looks for leaks at the end.
func TestTheLibraryPassesTheSanitizers(t *testing.T) {
	const sanitizers = "-fsanitize=address,undefined"
	cc := cmp.Or(os.Getenv("CC"), "cc")
	dir := t.TempDir()
	if out, err := exec.Command(cc, sanitizers, "-o", filepath.Join(dir, "none"), filepath.Join("testdata", "empty.c")).CombinedOutput(); err != nil {
		t.Skipf("%s has no sanitizers: %v\n%s", cc, err, out)
	}
	if err := os.Symlink(filepath.Join(library(t), "libweft-engine.so"), filepath.Join(dir, "libweft-engine.so")); err != nil {
		t.Fatal(err)
	}
	c := filepath.Join("..", "c")
	parts, err := filepath.Glob(filepath.Join(c, "*.c"))
	if err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(dir, "libibverbs.so.1")
	args := []string{
		cc, "-std=gnu11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-pthread", sanitizers, "-fno-sanitize-recover=undefined",
		"-Wl,-soname,libibverbs.so.1", "-Wl,--version-script=" + filepath.Join(c, "abi.map"), "-Wl,-z,nodelete", "-o", library,
	}
	said(t, "", append(args, parts...)...)
	program := compile(t, append(sources(t, "probe/*.c"), "-O1", sanitizers, library)...)
	names := []string{"busy", "destroy_in_flight", "destroy_while_others_poll", "no_leaks", "threads", "threads_poll_one_queue"}
	probe(t, dir, program, names, "ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:detect_leaks=1")
}
