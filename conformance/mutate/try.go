// One trial: the claiming tests of a row are built with the mutated source, and run.

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weft-rdma/weft/conformance"
)

// try returns the tests' verdict on the mutation. An error means that they did not run.
func try(ctx context.Context, root string, t conformance.Trial, limit time.Duration) (conformance.Result, error) {
	result := conformance.Result{ID: t.ID, Key: t.Key(), Verdict: conformance.Survived}
	dir, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return result, err
	}
	defer os.RemoveAll(dir)
	overlay, err := write(root, dir, t.Mutation)
	if err != nil {
		return result, err
	}
	tests := byPackage(t.Tests)
	for _, pkg := range slices.Sorted(maps.Keys(tests)) {
		verdict, test, err := runTests(ctx, root, overlay, pkg, tests[pkg], limit)
		if err != nil {
			return result, fmt.Errorf("%s: %s: %w", t.Mutation.Place, t.ID, err)
		}
		if verdict == conformance.Noticed {
			result.Verdict, result.Test = verdict, test
			return result, nil
		}
		if verdict == conformance.Hung {
			result.Verdict, result.Test = verdict, test
		}
	}
	return result, nil
}

// write writes the mutated file to the directory, and an overlay that makes the go command
// use it.
func write(root, dir string, m *conformance.Mutation) (overlay string, err error) {
	original := filepath.Join(root, filepath.FromSlash(m.File))
	src, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if src, err = m.Apply(src); err != nil {
		return "", err
	}
	mutated := filepath.Join(dir, "mutated.go")
	if err := os.WriteFile(mutated, src, 0o600); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// byPackage groups tests by the directory of their package, "." for the root's.
func byPackage(tests []string) map[string][]string {
	all := make(map[string][]string)
	for _, test := range tests {
		dot := strings.LastIndexByte(test, '.')
		pkg := "./" + test[:dot]
		if test[:dot] == "weft" {
			pkg = "."
		}
		all[pkg] = append(all[pkg], test[dot+1:])
	}
	return all
}

var (
	failedTest  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	runningTest = regexp.MustCompile(`(?m)^running tests:\n\t(\S+)`)
)

func runTests(ctx context.Context, root, overlay, pkg string, names []string, limit time.Duration) (conformance.Verdict, string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-vet=off", "-ldflags=-s -w", "-count=1", "-failfast",
		"-timeout", limit.String(), "-run", "^("+strings.Join(names, "|")+")$", pkg)
	cmd.Dir = root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	switch {
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case err == nil && bytes.Contains(out, []byte("no tests to run")):
		return "", "", fmt.Errorf("%s has none of the tests %s", pkg, strings.Join(names, ", "))
	case err == nil:
		return conformance.Survived, "", nil
	case bytes.Contains(out, []byte("[build failed]")) || bytes.Contains(out, []byte("[setup failed]")):
		return "", "", fmt.Errorf("the mutated source does not build:\n%s", out)
	}
	name := strings.TrimPrefix(pkg, "./")
	if m := failedTest.FindSubmatch(out); m != nil {
		return conformance.Noticed, name + "." + string(m[1]), nil
	}
	if bytes.Contains(out, []byte("panic: test timed out after")) {
		if m := runningTest.FindSubmatch(out); m != nil {
			name += "." + string(m[1])
		}
		return conformance.Hung, name, nil
	}
	return conformance.Noticed, name, nil // the process died, as by a deadlock in a bubble
}
