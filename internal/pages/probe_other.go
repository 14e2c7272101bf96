// This file writes to a page and changes nothing, where there is no assembly for
// that.

//go:build !amd64 && !arm64

package pages

import (
	"sync/atomic"
	"unsafe"
)

// touchToWrite adds nothing to the word where *p is, atomically. The word is in the
// same page.
func touchToWrite(p *byte) {
	word := unsafe.Add(unsafe.Pointer(p), -int(uintptr(unsafe.Pointer(p))%4))
	atomic.AddUint32((*uint32)(word), 0)
}
