//go:build !linux

// Systems without landlock.

package confine

import (
	"errors"
	"os/exec"
)

var errNone = errors.New("landlock is there on Linux only")

// Version returns an error.
func Version() (int, error) { return 0, errNone }

// Start returns an error.
func Start(*exec.Cmd, *Rules) error { return errNone }
