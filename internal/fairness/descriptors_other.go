//go:build !unix

package fairness

import "math"

// Descriptors is how many files this process may have open: there is no such limit.
func Descriptors() int { return math.MaxInt32 }
