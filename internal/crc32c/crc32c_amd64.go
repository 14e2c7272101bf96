// This file chooses between the assembly and the portable code.

package crc32c

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// haveAVX512 is set if this processor and system can run the assembly.
var haveAVX512 = cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && cpu.X86.HasSSE42

// folds are the constants of the assembly, two for each distance that it folds
// over: x^(D+32) mod P and x^(D-32) mod P for D bits, reflected and shifted
// left by one. See crc32c_amd64.s for why, and for what uses them.
var folds = [...]uint64{
	0x0dcb17aa4, 0x0b9e02b86, // D = 2048
	0x0740eef02, 0x09e4addf8, // D = 512
	0x1384aa63a, 0x0ba4fc28e, // D = 256
	0x0f20c0dfe, 0x14cd00bd6, // D = 128
}

const (
	// From alignFrom octets on, stores aligned to cache lines are worth a second
	// call of some 7 ns: the second-level cache is then a sixth faster.
	alignFrom = 16 << 10
	cacheLine = 64
)

func update(sum uint32, p []byte) uint32 {
	if !haveAVX512 {
		return updatePortable(sum, p)
	}
	return updateAVX512(sum, p)
}

func copyUpdate(sum uint32, dst, src []byte) uint32 {
	if !haveAVX512 {
		return copyPortable(sum, dst, src)
	}
	if len(src) >= alignFrom {
		head := int(-uintptr(unsafe.Pointer(unsafe.SliceData(dst))) % cacheLine)
		sum = copyAVX512(sum, dst, src[:head])
		dst, src = dst[head:], src[head:]
	}
	return copyAVX512(sum, dst, src)
}

// updateAVX512 is Update, for any length.
//
//go:noescape
func updateAVX512(sum uint32, p []byte) uint32

// copyAVX512 is Copy, for any length. It does not look at the length of dst.
//
//go:noescape
func copyAVX512(sum uint32, dst, src []byte) uint32
