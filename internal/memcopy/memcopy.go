// Package memcopy copies long memory at the speed of the caches, wherever the two begin.
//
// The copy of Go's runtime uses REP MOVS on processors that say to be fast at it, when
// the target is aligned. Where the source is not aligned to it as well that is half as fast
// as vector registers are, and payload behind headers seldom is. There is assembly for amd64
// processors with AVX2; others, and shorter memory, are left to the runtime.
package memcopy

// least, in octets, is where the runtime begins to use REP MOVS.
const least = 2048

// Copy copies src to dst, as far as both reach, and returns the number of octets. The two may
// not overlap. The octets are written in ascending order, as far as the processor keeps the
// order of writes: a program that polls the last one finds those before it.
func Copy(dst, src []byte) int {
	n := min(len(dst), len(src))
	if n < least {
		return copy(dst, src)
	}
	return long(dst[:n], src[:n])
}
