package crc32c

import "testing"

// stretch makes up to some KiB of memory from a fuzzer's octets: what matters
// is length, alignment and that content differs from place to place.
func stretch(data []byte, n uint16) []byte {
	b := make([]byte, int(n)+64)
	copy(b, data)
	for i := len(data); i < len(b); i++ {
		b[i] = byte(i * i >> 3)
	}
	return b
}

func FuzzUpdate(f *testing.F) {
	f.Add(uint32(0), []byte(nil), uint16(0), uint8(0))
	f.Add(uint32(1), []byte{1, 2, 3}, uint16(331), uint8(5))
	f.Add(^uint32(0), []byte{0xff}, uint16(0xffff), uint8(63))
	f.Fuzz(func(t *testing.T, sum uint32, data []byte, n uint16, off uint8) {
		p := stretch(data, n)[off%64:][:n:n]
		for _, impl := range implementations() {
			if got, want := impl.update(sum, p), want(sum, p); got != want {
				t.Errorf("%s: %d octets at %d after %08x: %08x, expected %08x", impl.name, n, off%64, sum, got, want)
			}
		}
	})
}

func FuzzCopy(f *testing.F) {
	f.Add(uint32(0), []byte(nil), uint16(0), uint8(0), uint8(0))
	f.Add(uint32(1), []byte{1, 2, 3}, uint16(331), uint8(5), uint8(62))
	f.Add(^uint32(0), []byte{0xff}, uint16(20000), uint8(63), uint8(1))
	f.Fuzz(func(t *testing.T, sum uint32, data []byte, n uint16, src, dst uint8) {
		from, to := stretch(data, n), make([]byte, int(n)+128)
		for _, impl := range implementations() {
			place{src: int(src % 64), dst: int(dst % 64), n: int(n), sum: sum}.check(t, impl, from, to)
		}
	})
}
