package crc32c

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// An implementation is what is tested: each that this machine can run, and
// what Update and Copy make of them.
type implementation struct {
	name   string
	update func(sum uint32, p []byte) uint32
	copy   func(sum uint32, dst, src []byte) uint32
}

func implementations() []implementation {
	return append(assembly(),
		implementation{"portable", updatePortable, copyPortable},
		implementation{"chosen", Update, Copy})
}

// want is the sum according to the standard library.
func want(sum uint32, p []byte) uint32 { return crc32.Update(sum, castagnoli, p) }

// random returns n octets, the same in every run.
func random(n int) []byte {
	b := make([]byte, n)
	rand.NewChaCha8([32]byte{31: 1}).Read(b)
	return b
}

// The values are those of RFC 3720 appendix B.4, as they stand on the wire.
func TestTheSumIsThatOfISCSI(t *testing.T) {
	up := make([]byte, 32)
	for i := range up {
		up[i] = byte(i)
	}
	down := slices.Clone(up)
	slices.Reverse(down)
	readPDU, err := hex.DecodeString("01c00000000000000000000000000000" +
		"14000000000004000000001400000018" + "28000000000000000200000000000000")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "00000000"},
		{"zeros", make([]byte, 32), "aa36918a"},
		{"ones", bytes.Repeat([]byte{0xff}, 32), "43aba862"},
		{"up", up, "4e79dd46"},
		{"down", down, "5cdb3f11"},
		{"iSCSI Read PDU", readPDU, "563a96d9"},
	} {
		for _, impl := range implementations() {
			wire := binary.LittleEndian.AppendUint32(nil, impl.update(0, v.data))
			if got := hex.EncodeToString(wire); got != v.want {
				t.Errorf("%s: update of %s: %s, expected %s", impl.name, v.name, got, v.want)
			}
			wire = binary.LittleEndian.AppendUint32(nil, impl.copy(0, make([]byte, len(v.data)), v.data))
			if got := hex.EncodeToString(wire); got != v.want {
				t.Errorf("%s: copy of %s: %s, expected %s", impl.name, v.name, got, v.want)
			}
		}
	}
}

// A place is a case of Copy, and of Update for src: octets [src, src+n) of one
// memory go to [dst, dst+n) of another.
type place struct {
	src, dst, n int
	sum         uint32 // of what came before
}

// check runs impl at p, in the memories from and to, and looks for what it
// changed in to beyond the n octets.
func (p place) check(t *testing.T, impl implementation, from, to []byte) {
	t.Helper()
	src := from[p.src:][:p.n:p.n]
	sum := want(p.sum, src)
	if got := impl.update(p.sum, src); got != sum {
		t.Fatalf("%s: update at %+v: %08x, expected %08x", impl.name, p, got, sum)
	}
	const untouched = 0xa5
	for i := range to {
		to[i] = untouched
	}
	if got := impl.copy(p.sum, to[p.dst:][:p.n], src); got != sum {
		t.Fatalf("%s: copy at %+v: %08x, expected %08x", impl.name, p, got, sum)
	}
	if !bytes.Equal(to[p.dst:][:p.n], src) {
		t.Fatalf("%s: copy at %+v copied something else", impl.name, p)
	}
	for i, b := range to {
		if b != untouched && (i < p.dst || i >= p.dst+p.n) {
			t.Fatalf("%s: copy at %+v wrote to %d", impl.name, p, i)
		}
	}
}

// Every length up to a few turns of the longest loop, wherever a cache line
// may begin in either memory.
func TestEveryLengthAtEveryAlignment(t *testing.T) {
	const longest, line = 1024, 64
	from, to := random(longest+line), make([]byte, longest+2*line)
	for _, impl := range implementations() {
		for n := range longest + 1 {
			// Some of the 64 times 64 alignments, others for each length.
			for i := range 8 {
				k := n*8 + i
				place{src: k % line, dst: k * 5 / line % line, n: n, sum: uint32(k) * 0x9e3779b1}.check(t, impl, from, to)
			}
		}
		for _, n := range []int{0, 1, 7, 63, 64, 65, 127, 255, 256, 257, 320, 511, 512, 513, 831} {
			for src := range line {
				for dst := range line {
					place{src: src, dst: dst, n: n}.check(t, impl, from, to)
				}
			}
		}
	}
}

func TestLongOnes(t *testing.T) {
	const longest = 300 << 10
	from, to := random(longest+64), make([]byte, longest+128)
	r := rand.New(rand.NewPCG(1, 2))
	for _, impl := range implementations() {
		for range 100 {
			n := r.IntN(longest + 1)
			if r.IntN(2) == 0 {
				n = r.IntN(40 << 10)
			}
			place{src: r.IntN(64), dst: r.IntN(64), n: n, sum: r.Uint32()}.check(t, impl, from, to)
		}
	}
}

func TestASumGoesOnFromPieceToPiece(t *testing.T) {
	data := random(20000)
	whole := want(0, data)
	r := rand.New(rand.NewPCG(3, 4))
	for _, impl := range implementations() {
		for _, longest := range []int{3, 20, 100, 700, 9000} {
			var updated, copied uint32
			to := make([]byte, len(data))
			for at := 0; at < len(data); {
				n := min(r.IntN(longest+1), len(data)-at)
				updated = impl.update(updated, data[at:at+n])
				copied = impl.copy(copied, to[at:], data[at:at+n])
				at += n
			}
			if updated != whole || copied != whole || !bytes.Equal(to, data) {
				t.Errorf("%s: in pieces of up to %d octets: %08x and %08x, expected %08x", impl.name, longest, updated, copied, whole)
			}
		}
	}
}

func TestCopyRefusesADestinationThatIsTooShort(t *testing.T) {
	for _, n := range []int{1, 64, 1000, 20000} {
		backing := make([]byte, n)
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), "slice bounds") {
					t.Errorf("copy of %d octets to %d: %v, expected to panic about bounds", n, n-1, err)
				}
			}()
			Copy(0, backing[:n-1], make([]byte, n)) // there would be room behind
		}()
		if slices.Max(backing) != 0 {
			t.Errorf("copy of %d octets to %d wrote something", n, n-1)
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	src, dst := random(20000), make([]byte, 20000)
	if n := testing.AllocsPerRun(100, func() { Copy(Update(0, src), dst, src) }); n != 0 {
		t.Errorf("%v allocations, expected none", n)
	}
}
