//go:build !unix

package socket

import (
	"errors"
	"syscall"
)

// Peek is not to be had here.
func Peek(syscall.RawConn) (int, error) { return 0, errors.ErrUnsupported }
