//go:build linux || darwin

// This file makes special files.

package files

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// mknod makes a pipe, a socket or a device.
func mknod(name string, mode fs.FileMode, dev Device) error {
	bits := uint32(mode.Perm())
	switch t := mode.Type(); {
	case t&fs.ModeNamedPipe != 0:
		bits |= unix.S_IFIFO
	case t&fs.ModeSocket != 0:
		bits |= unix.S_IFSOCK
	case t&fs.ModeCharDevice != 0:
		bits |= unix.S_IFCHR
	case t&fs.ModeDevice != 0:
		bits |= unix.S_IFBLK
	default:
		return &fs.PathError{Op: "mknod", Path: name, Err: errors.ErrUnsupported}
	}
	number := unix.Mkdev(dev.Major, dev.Minor)
	if unix.Major(number) != dev.Major || unix.Minor(number) != dev.Minor || number>>32 != 0 {
		return &fs.PathError{Op: "mknod", Path: name, Err: fs.ErrInvalid}
	}
	if err := unix.Mknod(name, bits, int(int32(number))); err != nil {
		return &fs.PathError{Op: "mknod", Path: name, Err: err}
	}
	return nil
}
