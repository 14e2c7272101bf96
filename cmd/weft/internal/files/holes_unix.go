//go:build linux || darwin || freebsd

// This file names the system's ways to find holes.

package files

import "golang.org/x/sys/unix"

// What os.File.Seek takes to find data and holes, and the error where there are no
// data any more.
const (
	seekData = unix.SEEK_DATA
	seekHole = unix.SEEK_HOLE

	errNoData = unix.ENXIO
)
