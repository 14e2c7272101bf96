//go:build !race

// This file chooses between the assembly and the runtime. The race detector does not see the
// accesses of assembly, so with it there is none.

package memcopy

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// long copies at least 256 octets.
func long(dst, src []byte) int {
	if !cpu.X86.HasAVX2 {
		return copy(dst, src)
	}
	copyAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), len(src))
	return len(src)
}

// copyAVX2 copies n octets, at least 256.
//
//go:noescape
func copyAVX2(dst, src *byte, n int)
