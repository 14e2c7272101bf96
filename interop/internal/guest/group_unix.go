//go:build unix

// This file starts a command in its own process group.

package guest

import (
	"os/exec"
	"syscall"
)

// ownGroup puts cmd into a process group of its own, so that ending it ends
// what it started as well.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// Interrupt does to cmd, and what it started, what Ctrl-C does.
func Interrupt(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
