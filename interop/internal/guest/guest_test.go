//go:build unix

package guest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// standIn is a script of the five verbs that keeps everything on this machine.
const standIn = `#!/bin/sh
verb=$1; shift
case $verb in
up) [ "$SIWVM_MTU" = 9000 ] || { echo "no MTU" >&2; exit 1; } ;;
run) case $1 in *"route get"*) echo "192.0.2.1 via 10.0.0.1 dev eth0 src 10.0.0.2 uid 0" ;; *) exec sh -c "$1" ;; esac ;;
host) exec "$@" ;;
esac
`

func newStandIn(t *testing.T) *Guest {
	t.Helper()
	for _, tool := range []string{"sh", "timeout", "seq"} {
		if _, err := exec.LookPath(tool); err != nil {
			if runtime.GOOS == "linux" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	script := filepath.Join(t.TempDir(), "guest")
	if err := os.WriteFile(script, []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	return &Guest{Script: script}
}

func TestAGuestThatIsUpHasItsAddresses(t *testing.T) {
	g := newStandIn(t)
	if err := g.Up(t.Context(), 9000); err != nil {
		t.Fatal(err)
	}
	if g.Addr != "10.0.0.2" || g.Gateway != "10.0.0.1" {
		t.Errorf("addresses %s and %s", g.Addr, g.Gateway)
	}
}

func TestAGuestThatDoesNotStartSaysWhy(t *testing.T) {
	if err := newStandIn(t).Up(t.Context(), 1500); err == nil || !strings.Contains(err.Error(), "no MTU") {
		t.Errorf("%v, expected the script's own words", err)
	}
}

func TestAProgramsOutputAndStatusComeBack(t *testing.T) {
	g := newStandIn(t)
	p, err := g.Start(t.Context(), "weft-guest-test", time.Minute, `sh -c "echo out; echo err >&2; exit 3"`)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Run(context.Background(), "rm -f "+p.name+".*") })
	status, err := p.Wait(t.Context(), time.Minute)
	if err != nil || status != 3 {
		t.Errorf("status %d, %v; expected 3", status, err)
	}
	stdout, stderr, err := p.Output(t.Context())
	if stdout != "out\n" || stderr != "err\n" || err != nil {
		t.Errorf("output %q and %q, %v", stdout, stderr, err)
	}
}

func TestAProgramThatDoesNotEndIsStopped(t *testing.T) {
	g := newStandIn(t)
	p, err := g.Start(t.Context(), "weft-guest-test", time.Minute, "tail -f /dev/null")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Run(context.Background(), "rm -f "+p.name+".*") })
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, err := p.Wait(t.Context(), time.Minute); err != nil || status == 0 {
		t.Errorf("status %d, %v; expected that of a signal", status, err)
	}
	if err := p.Stop(t.Context()); err != nil {
		t.Errorf("stopped again: %v", err)
	}
}

func TestACommandOfTheHostEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cmd := newStandIn(t).Host(ctx, "sh", "-c", "echo begun; exec tail -f /dev/null")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	begun := make([]byte, 6)
	if _, err := out.Read(begun); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := cmd.Wait(); err == nil {
		t.Error("the command ended well, expected it to be killed")
	}
}
