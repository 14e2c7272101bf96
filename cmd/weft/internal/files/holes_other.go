//go:build !(linux || darwin || freebsd)

// This file stands in where the system does not report holes.

package files

import "io"

// No Seek finds data and holes on these systems.
const (
	seekData = -1
	seekHole = -1
)

var errNoData = io.EOF
