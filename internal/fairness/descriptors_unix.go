//go:build unix

package fairness

import (
	"math"

	"golang.org/x/sys/unix"
)

// Descriptors is how many files this process may have open. The runtime has raised
// that as far as it goes.
func Descriptors() int {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil {
		return 256 // the least that systems come with
	}
	return int(min(uint64(limit.Cur), math.MaxInt32))
}
