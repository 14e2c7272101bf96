package memcopy_test

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/memcopy"
	"github.com/weft-rdma/weft/internal/pages"
)

// fenced returns size octets, of whole pages, with a page behind them that faults.
func fenced(t *testing.T, size int) (usable, all []byte) {
	t.Helper()
	all, err := unix.Mmap(-1, 0, size+os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(all) })
	if err := unix.Mprotect(all[size:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return all[:size:size], all
}

func TestNothingBeyondIsTouched(t *testing.T) {
	size := 4 * os.Getpagesize()
	from, _ := fenced(t, size)
	to, _ := fenced(t, size)
	for i := range from {
		from[i] = byte(i * i >> 3)
	}
	for n := 2000; n < 2300; n++ {
		clear(to)
		memcopy.Copy(to[size-n:], from[size-n:])
		if !bytes.Equal(to[size-n:], from[size-n:]) {
			t.Fatalf("the last %d octets differ", n)
		}
	}
}

// A fault of either memory becomes an error, as with the copy of the runtime.
func TestAFaultCanBeCaught(t *testing.T) {
	size := 4 * os.Getpagesize()
	good := make([]byte, 2*size)
	_, bad := fenced(t, size)
	for _, v := range []struct{ dst, src []byte }{{bad, good}, {good, bad}} {
		err := func() (err error) {
			defer pages.Catch(&err, [][]byte{bad}, pages.Trap())
			memcopy.Copy(v.dst[3:], v.src)
			return nil
		}()
		if err == nil {
			t.Error("no fault")
		}
	}
}
