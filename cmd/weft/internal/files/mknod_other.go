//go:build !linux && !darwin

// This file stands in where there are no special files.

package files

import (
	"errors"
	"io/fs"
)

// mknod makes a pipe, a socket or a device: not here.
func mknod(name string, _ fs.FileMode, _ Device) error {
	return &fs.PathError{Op: "mknod", Path: name, Err: errors.ErrUnsupported}
}
