//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package socket

import "errors"

// MaxSegment has no way to ask on this system.
func MaxSegment(uintptr) (int, error) { return 0, errors.ErrUnsupported }
