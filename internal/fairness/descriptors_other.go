// This file is for systems without a limit of descriptors.

//go:build !unix

package fairness

import "math"

// Descriptors returns how many files this process may have open: there is no limit.
func Descriptors() int { return math.MaxInt32 }
