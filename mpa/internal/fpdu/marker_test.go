// Markers: where they stand, where they point, and what a receiver does with
// those that point elsewhere.

package fpdu

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// walk calls f for each marker on wire, which begins at pos with an FPDU, with
// the offset of the marker and of the length field it has to point to, -1 for
// a marker between FPDUs.
func walk(wire []byte, pos uint64, f func(at, start int)) {
	for at := 0; at < len(wire); {
		if (pos+uint64(at))%512 == 0 {
			f(at, -1)
			at += 4
		}
		start := at
		n := int(binary.BigEndian.Uint16(wire[at:]))
		left := rawSize(n)
		for left > 0 {
			if (pos+uint64(at))%512 == 0 {
				f(at, start)
				at += 4
			}
			step := min(left, 512-int((pos+uint64(at))%512))
			at += step
			left -= step
		}
	}
}

// A mebioctet of frames long and short, walked by lengths alone.
//
// Claims: MPA-4.3-1 MPA-4.3-3 MPA-4.3-4 MPA-4.3-5 MPA-4.3-7 MPA-4.3-10 MPA-4.3-11 MPA-4.2-2 MPA-4.2-3
func TestEveryMarkerIsOnTheGridAndPointsToItsFrame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := Batch{Markers: true, CRC: true}
	var wire []byte
	for len(wire) < 1<<20 {
		n := 1 + r.IntN(60)
		if r.IntN(5) == 0 {
			n = 1 + r.IntN(3000)
		}
		b.append(n, pattern(n, n), nil)
		for _, p := range b.pieces {
			wire = append(wire, p...)
		}
		b.Wrote(b.octets)
	}
	count, between := 0, 0
	walk(wire, 0, func(at, start int) {
		if at != count*512 {
			t.Fatalf("marker %d at %d, expected at %d", count, at, count*512)
		}
		count++
		want := uint32(0)
		if start >= 0 {
			want = uint32(at - start)
		} else {
			between++
		}
		if got := binary.BigEndian.Uint32(wire[at:]); got != want {
			t.Fatalf("marker at %d is %08x, expected %08x", at, got, want)
		}
	})
	if want := (len(wire) + 511) / 512; count != want && count != want-1 {
		t.Errorf("%d markers in %d octets, expected %d", count, len(wire), want)
	}
	if between == 0 {
		t.Error("no marker fell between two frames; the test is to see some")
	}
}

// Claims: MPA-7.1.1-4
func TestWithoutMarkersNoneAreSent(t *testing.T) {
	b := Batch{}
	b.append(2000, pattern(2000, 1), nil)
	if b.octets != rawSize(2000) {
		t.Errorf("a frame of %d octets, expected %d", b.octets, rawSize(2000))
	}
}

// Claims: MPA-8-3 MPA-8-6 MPA-5.2-2
func TestAMarkerThatPointsElsewhereIsAnErrorOnceTheCRCHolds(t *testing.T) {
	for _, v := range []struct{ length, marker int }{
		{1100, 0}, {1100, 512}, {1100, 1024},
		{503, 512}, // directly before the CRC
	} {
		bad := encode(0, pattern(v.length, 1), true, true)
		bad[v.marker+3] += 4
		if _, err := decode(bad, 0, true, true); !isDamage(err, true) {
			t.Errorf("%+v wrong without its CRC: %v, expected code 2", v, err)
		}
		putCRC(bad, true)
		for _, crc := range []bool{true, false} {
			if got, err := decode(bad, 0, true, crc); !isDamage(err, false) || len(got) != 0 {
				t.Errorf("%+v wrong, CRC %t: %v, expected code 3", v, crc, err)
			}
		}
	}
}

// Claims: MPA-4.2-2 MPA-4.2-3
func TestReservedBitsOfAMarkerAreIgnoredExceptInTheCRC(t *testing.T) {
	u := pattern(1100, 1)
	for _, at := range []int{0, 512, 1024} {
		bad := encode(0, u, true, true)
		bad[at], bad[at+1] = 0xff, 0xff
		bad[at+3] |= 3
		if _, err := decode(bad, 0, true, true); !isDamage(err, true) {
			t.Errorf("marker at %d changed without its CRC: %v, expected code 2", at, err)
		}
		putCRC(bad, true)
		if got, err := decode(bad, 0, true, true); err != nil || !bytes.Equal(got[0], u) {
			t.Errorf("marker at %d with reserved bits set: %v, expected the ULPDU", at, err)
		}
	}
}

// Claims: MPA-4.3-8
func TestAMarkerBetweenFramesBelongsToTheSecond(t *testing.T) {
	first := encode(0, pattern(499, 1), true, true) // ends at 512
	if len(first) != 512 {
		t.Fatalf("the first frame ends at %d, expected 512", len(first))
	}
	second := encode(512, pattern(20, 2), true, true)
	wire := append(bytes.Clone(first), second...)
	wire[512] ^= 1
	got, err := decode(wire, 0, true, true)
	if len(got) != 1 || !isDamage(err, true) {
		t.Errorf("%d ULPDUs and %v, expected the first one and code 2", len(got), err)
	}
}

// The stream position goes on beyond 2^32, where TCP's sequence numbers wrap.
//
// Claims: MPA-4.3-6
func TestMarkersGoOnWhereSequenceNumbersWrap(t *testing.T) {
	for _, pos := range []uint64{1<<32 - 600, 1<<32 - 512, 1<<32 - 4, 1<<64 - 600} {
		ref := fpdutest.Stream{Markers: true, CRC: true, Pos: pos}
		u := pattern(1400, 1)
		want := ref.Send(u)
		if got := encode(pos, u, true, true); !bytes.Equal(got, want) {
			t.Errorf("position %d: the frame differs from the reference's", pos)
		}
		if got, err := decode(want, pos, true, true); err != nil || !bytes.Equal(got[0], u) {
			t.Errorf("position %d: %v", pos, err)
		}
	}
}
