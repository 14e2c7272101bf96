package crc32c

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// fenced returns memory of some pages between two guard pages: an access beyond it
// crashes the test.
func fenced(t *testing.T) []byte {
	t.Helper()
	page := os.Getpagesize()
	size := 2048/page*page + page
	all, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Munmap(all); err != nil {
			t.Error(err)
		}
	})
	usable := all[page:][:size:size]
	if err := unix.Mprotect(usable, unix.PROT_READ|unix.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	return usable
}

func TestNothingBeyondIsTouched(t *testing.T) {
	from, to := fenced(t), fenced(t)
	copy(from, random(len(from)))
	last := len(from)
	for _, impl := range implementations() {
		for n := range 1100 {
			place{src: 0, dst: last - n, n: n}.check(t, impl, from, to)
			place{src: last - n, dst: 0, n: n}.check(t, impl, from, to)
			place{src: last - n, dst: last - n, n: n}.check(t, impl, from, to)
		}
	}
}
