package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// This file runs rdma-core's own suite, its tests for Python.

// suiteFolder is where Debian's package rdma-core has the tests, most of them compressed.
const suiteFolder = "/usr/share/doc/rdma-core/tests"

// python is the distribution's, which has pyverbs.
const python = "/usr/bin/python3"

func pyverbs() []row {
	return []row{{
		name: "rdma-core's tests for Python", pkg: "rdma-core python3-pyverbs iproute2", personas: both, scene: runSuite, limit: 5 * time.Minute,
		needs: []string{suiteFolder, python, "/usr/lib/python3/dist-packages/pyverbs", "ip"},
	}}
}

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

// suiteRuns are the runs by persona, and how many tests have to pass: on an rc device more
// than the 86 of Linux's rxe, on an RNIC more than the 25 of siw.
var suiteRuns = map[string]struct {
	runs  []suiteRun
	least int
}{
	"rc":   {[]suiteRun{{}, {flags: []string{"--view"}, args: slices.Concat(cmTests, rcTests)}}, 87},
	"rnic": {[]suiteRun{{}, {flags: []string{"--view"}, args: slices.Concat([]string{"--gid", "0"}, cmTests)}}, 26},
}

// runSuite runs the suite as a persona, and notes the counts.
func runSuite(ctx context.Context, s *stage) error {
	if err := s.unpackSuite(); err != nil {
		return err
	}
	var all counts
	for _, r := range suiteRuns[s.persona].runs {
		c, err := s.runTests(ctx, r)
		if err != nil {
			return err
		}
		if all.ran == 0 {
			all = c
			continue
		}
		all.passed += c.passed // which the run of all has skipped
		all.skipped -= c.passed
		all.failed = append(all.failed, c.failed...)
	}
	s.note = all.String()
	return all.judge(suiteRuns[s.persona].least)
}

// unpackSuite copies the tests into the row's folder.
func (s *stage) unpackSuite() error {
	to := filepath.Join(s.dir, "tests")
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(suiteFolder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := unpack(filepath.Join(suiteFolder, e.Name()), filepath.Join(to, strings.TrimSuffix(e.Name(), ".gz"))); err != nil {
			return err
		}
	}
	return nil
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

// runTests runs the suite once. It exits with a status when a test fails; what it says counts.
func (s *stage) runTests(ctx context.Context, r suiteRun) (counts, error) {
	p, err := s.start("suite", strings.Join(append([]string{python, "{dir}/tests/run_tests.py", "--dev", "weft0", "-v"}, r.args...), " "), r.flags...)
	if err != nil {
		return counts{}, err
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		return counts{}, errors.New("the suite does not end")
	}
	c, ok := count(p.text())
	if !ok {
		return c, errors.New("the suite did not come to its end")
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
