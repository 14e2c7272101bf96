//go:build !unix

// This file stands in where there are no process groups.

package guest

import "os/exec"

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// Interrupt ends cmd: there is no Ctrl-C to be sent.
func Interrupt(cmd *exec.Cmd) error { return cmd.Process.Kill() }
