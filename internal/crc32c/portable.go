// The portable implementation.

package crc32c

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func updatePortable(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// copyBlock is a size in octets of which two fit into a first-level cache with room to
// spare.
const copyBlock = 8 << 10

// copyPortable computes the sum of the copy, so that src is read once.
func copyPortable(sum uint32, dst, src []byte) uint32 {
	for len(src) > 0 {
		n := copy(dst, src[:min(len(src), copyBlock)])
		sum = updatePortable(sum, dst[:n])
		dst, src = dst[n:], src[n:]
	}
	return sum
}
