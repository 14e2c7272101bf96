// This file is for systems on which congestion control cannot be chosen.

//go:build !linux

package cm

import (
	"errors"
	"fmt"
)

func setCongestion(_ uintptr, name string) error {
	return fmt.Errorf("congestion control %q: only Linux lets a program choose; leave it empty: %w", name, errors.ErrUnsupported)
}

// getCongestion returns nothing: these systems do not report it.
func getCongestion(uintptr) (string, error) { return "", nil }
