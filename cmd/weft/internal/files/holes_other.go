//go:build !(linux || darwin || freebsd)

package files

import "io"

// No Seek finds data and holes on these systems.
const (
	seekData = -1
	seekHole = -1
)

var errNoData = io.EOF
