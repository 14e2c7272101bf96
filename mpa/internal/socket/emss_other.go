//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package socket

import "errors"

// maxSegment has no way to ask on this system.
func maxSegment(uintptr) (int, error) { return 0, errors.ErrUnsupported }
