//go:build !386 && !arm

// This file names the call that sets groups where there is only one.

package folder

import "golang.org/x/sys/unix"

const sysSetgroups = unix.SYS_SETGROUPS
