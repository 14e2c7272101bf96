package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTheTextOfAPingIsRpings holds it to what rdma-core's rping printed, with
// -S 100.
func TestTheTextOfAPingIsRpings(t *testing.T) {
	const want = "" +
		"ping data: rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ[\\\n" +
		"ping data: rdma-ping-1: BCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]\n" +
		"ping data: rdma-ping-2: CDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^\n"
	if err := expectText("rping", []byte(want), pingText("ping data: ", session{size: 100, count: 3})); err != nil {
		t.Error(err)
	}
}

func TestPortsOfSessionsAreNobodyElses(t *testing.T) {
	const mountd = 20048 // of Linux
	used := []int{portmapPort, nfsPort, mountd, nfsRDMAPort}
	seen := map[int]bool{}
	h := &harness{}
	for range 4000 {
		port := h.nextPort()
		if slices.Contains(used, port) || seen[port] || port >= 32768 {
			t.Fatalf("session %d gets port %d", len(seen)+1, port)
		}
		seen[port] = true
	}
}

func TestTextThatDiffersIsToldByItsLine(t *testing.T) {
	for name, c := range map[string]struct{ got, want string }{
		"a line differs": {"one\nTWO\n", "line 2 of its output"},
		"too few":        {"one\n", "line 2 of its output"},
		"too many":       {"one\ntwo\nthree\n", "line 3 of its output"},
		"nothing":        {"", "line 1 of its output"},
	} {
		t.Run(name, func(t *testing.T) {
			err := expectText("it", []byte(c.got), []byte("one\ntwo\n"))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, expected something about %q", err, c.want)
			}
		})
	}
}

func TestAProbeIsRefusedOnlyByAnEndWithoutAnAnswer(t *testing.T) {
	for printed, ok := range map[string]bool{"0\n0\n": true, "0\n1\n": true, "0\n124\n": false, "20\n0\n": false, "": false} {
		if err := refused(printed, nil); (err == nil) != ok {
			t.Errorf("%q: %v", printed, err)
		}
	}
}

// output runs the command with what it prints kept out of the test's own.
func output(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var read [2]*os.File
	for i, stream := range []**os.File{&os.Stdout, &os.Stderr} {
		file, err := os.Create(filepath.Join(t.TempDir(), "stream"))
		if err != nil {
			t.Fatal(err)
		}
		saved := *stream
		*stream, read[i] = file, file
		defer func() { *stream = saved; file.Close() }()
	}
	status = run(args)
	var text [2]string
	for i, file := range read {
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(file)
		if err != nil {
			t.Fatal(err)
		}
		text[i] = string(b)
	}
	return status, text[0], text[1]
}

func TestWhatIsMissingIsSaidAndNothingIsClaimed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	status, stdout, stderr := output(t, "--guest", "no-such-guest", "--logs", t.TempDir())
	if status != exitMissing || stdout != "" {
		t.Errorf("status %d and output %q, expected %d and none", status, stdout, exitMissing)
	}
	for _, what := range []string{"tshark", "apt-get install tshark", "the go command", "no-such-guest", "guest/siwguest build"} {
		if !strings.Contains(stderr, what) {
			t.Errorf("%q is not mentioned:\n%s", what, stderr)
		}
	}
}

func TestHelpIsNoFailure(t *testing.T) {
	for _, args := range [][]string{{"-h"}, {"check", "-h"}, {"ucmatose", "-h"}, {"wrongkey", "-h"}} {
		if status, _, stderr := output(t, args...); status != 0 || !strings.Contains(stderr, "-") {
			t.Errorf("%q: status %d, and it said %q", args, status, stderr)
		}
	}
}

func TestWrongUsageIsExitStatusTwo(t *testing.T) {
	for _, args := range [][]string{
		{"no-such-command"}, {"--parts", "everything"}, {"--mtu", "12"}, {"--mtu", "big"}, {"--only", "("}, {"--no-such-flag"},
		{"check", "--siw", "nobody", "file"}, {"check"}, {"wrongkey", "--step", "sideways"}, {"ucmatose", "--no-such-flag"},
	} {
		if status, stdout, _ := output(t, args...); status != exitUsage || stdout != "" {
			t.Errorf("%q: status %d, output %q; expected %d and none", args, status, stdout, exitUsage)
		}
	}
}
