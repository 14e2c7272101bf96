//go:build !(linux || darwin || freebsd)

package files

import "io"

// Nothing tells of data and holes here: no Seek takes these.
const (
	seekData = -1
	seekHole = -1
)

var errNoData = io.EOF
