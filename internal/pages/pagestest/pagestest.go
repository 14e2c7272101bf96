//go:build unix

// Package pagestest makes memory that faults, for tests.
package pagestest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Page is the size of a page, in octets.
var Page = os.Getpagesize()

// ReadOnly returns n pages that can't be written.
func ReadOnly(tb testing.TB, n int) []byte { return protected(tb, n, unix.PROT_READ) }

// NoAccess returns n pages that can be neither read nor written.
func NoAccess(tb testing.TB, n int) []byte { return protected(tb, n, unix.PROT_NONE) }

func protected(tb testing.TB, n, right int) []byte {
	b := mapped(tb, -1, n*Page, unix.MAP_ANON|unix.MAP_PRIVATE)
	fill(b)
	Protect(tb, b, right)
	return b
}

// Truncated returns n pages mapped from a file that is truncated to its first keep pages.
func Truncated(tb testing.TB, keep, n int) []byte {
	f, err := os.Create(filepath.Join(tb.TempDir(), "mapped"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { f.Close() })
	if err := f.Truncate(int64(n * Page)); err != nil {
		tb.Fatal(err)
	}
	b := mapped(tb, int(f.Fd()), n*Page, unix.MAP_SHARED)
	fill(b)
	if err := f.Truncate(int64(keep * Page)); err != nil {
		tb.Fatal(err)
	}
	return b
}

// Plain returns n pages that can be read and written, until Protect changes that.
func Plain(tb testing.TB, n int) []byte {
	b := mapped(tb, -1, n*Page, unix.MAP_ANON|unix.MAP_PRIVATE)
	fill(b)
	return b
}

// ReadWrite are the rights of Plain.
const ReadWrite = unix.PROT_READ | unix.PROT_WRITE

// Protect gives the pages of b the rights of mprotect.
func Protect(tb testing.TB, b []byte, right int) {
	tb.Helper()
	if err := unix.Mprotect(b, right); err != nil {
		tb.Fatal(err)
	}
}

func mapped(tb testing.TB, fd, size, flags int) []byte {
	tb.Helper()
	b, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, flags)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := unix.Munmap(b); err != nil {
			tb.Error(err)
		}
	})
	return b
}

// fill sets each octet i of b to Octet(i).
func fill(b []byte) {
	for i := range b {
		b[i] = Octet(i)
	}
}

// Octet returns the initial value of octet i.
func Octet(i int) byte { return byte(7 * i) }
