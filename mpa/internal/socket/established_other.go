//go:build !linux

package socket

import (
	"errors"
	"fmt"
	"syscall"
)

// Established looks whether the peer has ended the connection with nothing left
// to be read.
func Established(rc syscall.RawConn) error {
	if _, err := Peek(rc); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("the peer has ended the connection: %w", err)
	}
	return nil
}
