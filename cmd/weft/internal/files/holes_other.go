//go:build !(linux || darwin || freebsd)

// This file stands in where the system does not report holes.

package files

import "io"

// These systems cannot seek to data and holes.
const (
	seekData = -1
	seekHole = -1
)

var errNoData = io.EOF
