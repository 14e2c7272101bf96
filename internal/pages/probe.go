package pages

import (
	"unsafe"
)

// Readable finds out whether b can be read, an octet of each of its pages being looked
// at. n is how many octets come before the page that cannot.
func Readable(b []byte) (n int, err error) {
	defer Catch(&err, [][]byte{b}, Trap())
	for n < len(b) {
		touch(&b[n])
		n += toNextPage(&b[n])
	}
	return min(n, len(b)), nil
}

// Writable is Readable for writing. It changes nothing, whoever else writes to b
// meanwhile, but makes the system provide the pages.
func Writable(b []byte) (n int, err error) {
	defer Catch(&err, [][]byte{b}, Trap())
	for n < len(b) {
		touchToWrite(&b[n])
		n += toNextPage(&b[n])
	}
	return min(n, len(b)), nil
}

// toNextPage is the number of octets from p to the next page.
func toNextPage(p *byte) int {
	return int(pageSize - uintptr(unsafe.Pointer(p))&(pageSize-1))
}

// touch reads *p, whoever writes it: the value is not used.
//
//go:norace
//go:noinline
func touch(p *byte) byte { return *p }
