// This file reads the limit of descriptors.

//go:build unix

package fairness

import (
	"math"

	"golang.org/x/sys/unix"
)

// Descriptors returns how many files this process may have open. The runtime has raised
// the soft limit to the hard one.
func Descriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 256 // the smallest default of any system
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
