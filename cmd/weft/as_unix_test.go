//go:build unix

package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// runAs runs this program again by its link in /proc: other users may not search the
// directory that it is in.
func runAs(ts *testscript.TestScript, _ bool, args []string) {
	uid, err := strconv.ParseUint(args[0], 10, 32)
	ts.Check(err)
	stdout, err := os.Create(ts.MkAbs("as.out"))
	ts.Check(err)
	defer stdout.Close()
	stderr, err := os.Create(ts.MkAbs("as.err"))
	ts.Check(err)
	defer stderr.Close()
	cmd := exec.Cmd{Path: "/proc/self/exe", Args: append([]string{"weft"}, args[2:]...), Dir: "/", Stdout: stdout, Stderr: stderr}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	_ = cmd.Run() // its state says how it ended
	if got := strconv.Itoa(cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("weft %s ended with status %s, want %s:\n%s", strings.Join(args[2:], " "), got, args[1], ts.ReadFile("as.err"))
	}
}
