package crc32c

import (
	"fmt"
	"testing"
)

// sizes in octets: of small messages, of segments, and of what does not fit
// into a cache of the first or second level.
var sizes = []int{64, 128, 256, 512, 1500, 4 << 10, 16 << 10, 64 << 10, 1 << 20}

// benchmark runs f for each size, with memories like those of the batch of
// frames: what is sent begins on a page, where it goes behind a header.
func benchmark(b *testing.B, f func(dst, src []byte)) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			src, dst := make([]byte, n), make([]byte, n+16)[16:]
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				f(dst, src)
			}
		})
	}
}

// The portable one is hash/crc32 by itself.
func BenchmarkUpdate(b *testing.B) {
	for _, impl := range implementations() {
		b.Run(impl.name, func(b *testing.B) {
			benchmark(b, func(_, src []byte) { impl.update(0, src) })
		})
	}
}

// "apart" is copy and then Update, what Copy is there to beat.
func BenchmarkCopy(b *testing.B) {
	for _, impl := range implementations() {
		b.Run(impl.name, func(b *testing.B) {
			benchmark(b, func(dst, src []byte) { impl.copy(0, dst, src) })
		})
	}
	b.Run("apart", func(b *testing.B) {
		benchmark(b, func(dst, src []byte) {
			copy(dst, src)
			Update(0, dst)
		})
	})
}
