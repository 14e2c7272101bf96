//go:build !linux

package mpa

import (
	"errors"
	"fmt"
	"syscall"
)

// established looks whether the peer has ended the connection with nothing left
// to be read.
func established(rc syscall.RawConn) error {
	if _, err := peek(rc); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("mpa: the peer has ended the connection: %w", err)
	}
	return nil
}
