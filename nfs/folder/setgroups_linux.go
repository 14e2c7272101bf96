//go:build !386 && !arm

// This file is for architectures with a single setgroups call.

package folder

import "golang.org/x/sys/unix"

const sysSetgroups = unix.SYS_SETGROUPS
