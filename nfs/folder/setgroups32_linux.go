//go:build 386 || arm

// This file names the call that sets groups where there is an older one with
// groups of 16 bits.

package folder

import "golang.org/x/sys/unix"

const sysSetgroups = unix.SYS_SETGROUPS32
