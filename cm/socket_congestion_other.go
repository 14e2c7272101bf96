//go:build !linux

package cm

import (
	"errors"
	"fmt"
)

func setCongestion(_ uintptr, name string) error {
	return fmt.Errorf("congestion control %q: only on Linux can a program choose: leave it empty: %w", name, errors.ErrUnsupported)
}

// getCongestion has no way to tell.
func getCongestion(uintptr) (string, error) { return "", nil }
