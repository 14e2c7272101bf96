package crc32c

import (
	"math/bits"
	"testing"
)

func assembly() []implementation {
	if !haveAVX512 {
		return nil
	}
	return []implementation{{"AVX-512", updateAVX512, copyAVX512}}
}

// powerOfX is x^n modulo the Castagnoli polynomial, which is x^32 and the bits
// of 1EDC6F41h (RFC 3720 §12.1); bit i stands for x^i.
func powerOfX(n int) uint32 {
	r := uint32(1)
	for range n {
		over := r >> 31
		r = r<<1 ^ over*0x1edc6f41
	}
	return r
}

func TestTheConstantsAreThePowersOfXThatFoldingNeeds(t *testing.T) {
	for i, distance := range []int{2048, 512, 256, 128} {
		for j, n := range []int{distance + 32, distance - 32} {
			if got, want := folds[2*i+j], uint64(bits.Reverse32(powerOfX(n)))<<1; got != want {
				t.Errorf("constant %d for %d bits: %#x, expected %#x, of x^%d", j, distance, got, want, n)
			}
		}
	}
}
