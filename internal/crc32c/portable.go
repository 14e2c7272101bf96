package crc32c

// The portable implementation.

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func updatePortable(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// copyBlock, in octets, twice over fits into a cache of the first level with
// room for what else is there.
const copyBlock = 8 << 10

// copyPortable digests the copy and not src, which is read once that way.
func copyPortable(sum uint32, dst, src []byte) uint32 {
	for len(src) > 0 {
		n := copy(dst, src[:min(len(src), copyBlock)])
		sum = updatePortable(sum, dst[:n])
		dst, src = dst[n:], src[n:]
	}
	return sum
}
