package folder

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// exhaust uses up the descriptors of the process, whose limit it lowers until the test ends.
func exhaust(t *testing.T, taken *[]*os.File) {
	t.Helper()
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit))
	few := limit
	few.Cur = min(limit.Cur, 256)
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	for {
		f, err := os.Open(os.DevNull)
		if exhausted(err) {
			return
		}
		must(t, err)
		*taken = append(*taken, f)
	}
}
