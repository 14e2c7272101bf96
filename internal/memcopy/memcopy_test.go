package memcopy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// random returns n octets, the same in every run.
func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{31: 1}).Read(b)
	return b
}

// check copies n octets from offset to offset, and looks at every octet of the target.
func check(t *testing.T, src, dst, n int) {
	t.Helper()
	from, to := random(src+n+64), bytes.Repeat([]byte{0xa5}, dst+n+300)
	if got := Copy(to[dst:][:n], from[src:][:n]); got != n {
		t.Fatalf("%d octets from %d to %d: %d copied", n, src, dst, got)
	}
	want := bytes.Repeat([]byte{0xa5}, len(to))
	copy(want[dst:][:n], from[src:])
	if !bytes.Equal(to, want) {
		t.Fatalf("%d octets from %d to %d are not what was there, or something beside them has changed", n, src, dst)
	}
}

func TestACopyIsTheSameWhereverBothBegin(t *testing.T) {
	for src := range 65 {
		for dst := range 65 {
			check(t, src, dst, least+(src+dst)%7)
		}
	}
}

func TestACopyHasEachLength(t *testing.T) {
	for n := range 300 {
		check(t, n%64, n%61, n)
		check(t, n%64, n%61, least-150+n)
	}
	for n := 60000; n < 70000; n += 97 {
		check(t, n%64, n%61, n)
	}
}

func TestTheShorterOfTheTwoCounts(t *testing.T) {
	a, b := random(5000), make([]byte, 3000)
	if n := Copy(b, a); n != 3000 || !bytes.Equal(b, a[:3000]) {
		t.Errorf("%d of 3000 octets, or they differ", n)
	}
	clear(b)
	c := make([]byte, 5000)
	if n := Copy(c, a[:3000]); n != 3000 || !bytes.Equal(c[:3000], a[:3000]) || c[3000] != 0 {
		t.Errorf("%d of 3000 octets, or they differ", n)
	}
}

func FuzzCopy(f *testing.F) {
	f.Add(uint8(0), uint8(0), uint16(0))
	f.Add(uint8(22), uint8(0), uint16(64754))
	f.Add(uint8(1), uint8(63), uint16(least))
	f.Fuzz(func(t *testing.T, src, dst uint8, n uint16) { check(t, int(src), int(dst), int(n)) })
}

// The payload of an FPDU stands behind 16 octets of headers in its batch, and goes to memory
// that mostly begins on a page: "runtime" is what Copy is there to beat.
func BenchmarkCopy(b *testing.B) {
	from, to := make([]byte, 128<<10), make([]byte, 128<<10)
	for _, n := range []int{least, 4 << 10, 16 << 10, 64 << 10} {
		for _, at := range []int{0, 16, 22, 64} {
			for _, v := range []struct {
				name string
				copy func(dst, src []byte) int
			}{{"memcopy", Copy}, {"runtime", func(dst, src []byte) int { return copy(dst, src) }}} {
				b.Run(fmt.Sprintf("%d/from=%d/%s", n, at, v.name), func(b *testing.B) {
					b.SetBytes(int64(n))
					for b.Loop() {
						v.copy(to[:n], from[at:][:n])
					}
				})
			}
		}
	}
}
