package main

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// This file runs rdma-core's own suite, its tests for Python.

// suiteFolder is where Debian's package rdma-core has the tests, most of them compressed.
const suiteFolder = "/usr/share/doc/rdma-core/tests"

// python is the distribution's, which has pyverbs.
const python = "/usr/bin/python3"

var pyverbs = row{name: "rdma-core's tests for Python", pkg: "rdma-core python3-pyverbs iproute2", personas: both, run: runSuite}

// A suiteRun is one run of the suite: with which flags of weft run and arguments.
type suiteRun struct {
	flags, args []string
}

// The tests of rdma_cm look for the device in sysfs, and are skipped where it is not. That
// of datagrams has no way to be skipped, so it is left out. On an RNIC so are two that count
// on RC: one posts a receive when the message for it may have come, the other looks at
// memory when the Write into it has completed at its sender.
var (
	cmTests = []string{"-k", "*.test_rdmacm_sync_traffic", "-k", "*.test_rdmacm_async_traffic", "-k", "test_rdmacm_async_re"}
	rcTests = []string{"-k", "test_rdmacm_async_traffic_external_qp", "-k", "test_rdmacm_async_write"}
)

// suites are the runs by persona, and how many tests have to pass: on an rc device more
// than the 86 of Linux's rxe, on an RNIC more than the 25 of siw.
var suites = map[string]struct {
	runs  []suiteRun
	least int
}{
	"rc":   {[]suiteRun{{}, {flags: []string{"--view"}, args: slices.Concat(cmTests, rcTests)}}, 87},
	"rnic": {[]suiteRun{{}, {flags: []string{"--view"}, args: slices.Concat([]string{"--gid", "0"}, cmTests)}}, 26},
}

func runSuite(ctx context.Context, b *bench, persona string) (note string, err error) {
	dir, err := b.unpackSuite()
	if err != nil {
		return "", err
	}
	var all counts
	for _, r := range suites[persona].runs {
		c, err := b.suite(ctx, dir, persona, r)
		if err != nil {
			return "", err
		}
		if all.ran == 0 {
			all = c
			continue
		}
		all.passed += c.passed // which the run of all has skipped
		all.skipped -= c.passed
		all.failed = append(all.failed, c.failed...)
	}
	return all.String(), all.judge(suites[persona].least)
}

// hasSuite reports whether what the suite needs is installed.
func hasSuite() bool {
	_, err := os.Stat(suiteFolder)
	_, ip := exec.LookPath("ip")
	return err == nil && ip == nil && exec.Command(python, "-c", "import pyverbs").Run() == nil
}

// unpackSuite copies the tests into the scratch folder.
func (b *bench) unpackSuite() (dir string, err error) {
	dir = filepath.Join(b.dir, "suite")
	to := filepath.Join(dir, "tests")
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(suiteFolder)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if err := unpack(filepath.Join(suiteFolder, e.Name()), filepath.Join(to, strings.TrimSuffix(e.Name(), ".gz"))); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// unpack copies a file, which may be compressed.
func unpack(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	var r io.Reader = in
	if strings.HasSuffix(from, ".gz") {
		if r, err = gzip.NewReader(in); err != nil {
			return err
		}
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o644)
}

// suite runs the suite once. It exits with a status when a test fails; what it says counts.
func (b *bench) suite(ctx context.Context, dir, persona string, r suiteRun) (counts, error) {
	flags := append([]string{"--persona", persona}, r.flags...)
	command := append([]string{python, filepath.Join(dir, "tests", "run_tests.py"), "--dev", "weft0", "-v"}, r.args...)
	p, err := b.start(flags, command)
	if err != nil {
		return counts{}, err
	}
	defer p.end()
	select {
	case <-p.done:
	case <-ctx.Done():
		return counts{}, fmt.Errorf("the suite does not end: %s", tail(p.text()))
	}
	c, ok := count(p.text())
	if !ok {
		return c, fmt.Errorf("the suite did not come to its end: %s", tail(p.text()))
	}
	return c, nil
}

// counts are what a run of the suite has come to.
type counts struct {
	ran, passed, skipped int
	failed               []string
}

var (
	ranLine    = regexp.MustCompile(`(?m)^Ran (\d+) tests? in`)
	resultLine = regexp.MustCompile(`(?m)^(?:OK|FAILED)(?: \((.*)\))?$`)
	failedLine = regexp.MustCompile(`(?m)^(?:FAIL|ERROR): (\S+)`)
)

// count reads what Python's unittest says at its end.
func count(text string) (c counts, ok bool) {
	ran, result := ranLine.FindStringSubmatch(text), resultLine.FindAllStringSubmatch(text, -1)
	if ran == nil || result == nil {
		return c, false
	}
	c.ran, _ = strconv.Atoi(ran[1]) // digits
	c.passed = c.ran
	for _, field := range strings.Split(result[len(result)-1][1], ", ") {
		name, number, _ := strings.Cut(field, "=")
		n, _ := strconv.Atoi(number)
		c.passed -= n
		if name == "skipped" {
			c.skipped = n
		}
	}
	for _, m := range failedLine.FindAllStringSubmatch(text, -1) {
		c.failed = append(c.failed, m[1])
	}
	return c, true
}

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d skipped, %d failed", c.passed, c.skipped, len(c.failed))
}

// judge is why the counts are not good enough.
func (c counts) judge(least int) error {
	switch {
	case len(c.failed) > 0:
		return fmt.Errorf("%v: %s", c, strings.Join(c.failed, ", "))
	case c.passed < least:
		return fmt.Errorf("%v: at least %d are to pass", c, least)
	}
	return nil
}
