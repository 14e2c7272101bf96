//go:build !unix

package mpa

import (
	"errors"
	"syscall"
)

// peek is not to be had here.
func peek(syscall.RawConn) (int, error) { return 0, errors.ErrUnsupported }
