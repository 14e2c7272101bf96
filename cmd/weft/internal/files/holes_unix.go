//go:build linux || darwin || freebsd

// This file names the system's ways to find holes.

package files

import "golang.org/x/sys/unix"

// Arguments of os.File.Seek that find data and holes, and its error when no data
// follow.
const (
	seekData = unix.SEEK_DATA
	seekHole = unix.SEEK_HOLE

	errNoData = unix.ENXIO
)
