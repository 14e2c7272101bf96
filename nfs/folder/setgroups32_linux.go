//go:build 386 || arm

// This file is for architectures on which the first setgroups call had groups of 16 bits.

package folder

import "golang.org/x/sys/unix"

const sysSetgroups = unix.SYS_SETGROUPS32
