// This file finds out whether pages can be read and written.

package pages

import (
	"unsafe"
)

// Readable reads an octet of each page of b. If one can't be read, err is a *Fault and n
// is the number of octets before that page.
func Readable(b []byte) (n int, err error) {
	defer Catch(&err, [][]byte{b}, Trap())
	for n < len(b) {
		touch(&b[n])
		n += toNextPage(&b[n])
	}
	return min(n, len(b)), nil
}

// Writable is Readable for writing. It changes nothing, even while others write to b, but
// makes the system provide the pages.
func Writable(b []byte) (n int, err error) {
	defer Catch(&err, [][]byte{b}, Trap())
	for n < len(b) {
		touchToWrite(&b[n])
		n += toNextPage(&b[n])
	}
	return min(n, len(b)), nil
}

// toNextPage returns the number of octets from p to the next page.
func toNextPage(p *byte) int {
	return int(pageSize - uintptr(unsafe.Pointer(p))&(pageSize-1))
}

// touch reads *p, even while others write it: the value is not used.
//
//go:norace
//go:noinline
func touch(p *byte) byte { return *p }
