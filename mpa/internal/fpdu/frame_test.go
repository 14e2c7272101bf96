// Frames against golden octets and against the reference.

package fpdu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// encode is the wire octets of one ULPDU at a stream position.
func encode(pos uint64, ulpdu []byte, markers, crc bool) []byte {
	f := bytes.Repeat([]byte{0xee}, Size(pos, len(ulpdu), markers))
	h := min(len(ulpdu), 18)
	half := h + (len(ulpdu)-h)/2
	put(f, pos, len(ulpdu), ulpdu[:h], [][]byte{ulpdu[h:half], nil, ulpdu[half:]}, markers, crc)
	return f
}

// decode takes the ULPDUs out of wire, which begins at pos.
func decode(wire []byte, pos uint64, markers, crc bool) ([][]byte, error) {
	wire = bytes.Clone(wire)
	var got [][]byte
	for len(wire) > 0 {
		n, size, ok := At(wire, pos, markers)
		if !ok || size > len(wire) {
			return got, fmt.Errorf("%d octets left over", len(wire))
		}
		u, err := Open(wire[:size], pos, n, markers, crc)
		if err != nil {
			return got, err
		}
		got = append(got, bytes.Clone(u))
		wire, pos = wire[size:], pos+uint64(size)
	}
	return got, nil
}

// ramp is octets 0, 1, 2 and so on.
func ramp(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)
	}
	return b
}

// sendHeader is DDP's for an untagged Send that is one segment.
func sendHeader(msn byte) []byte {
	return []byte{0x41, 0x43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, msn, 0, 0, 0, 0}
}

// A golden is one FPDU, its octets known.
type golden struct {
	name    string
	pos     uint64
	markers bool
	ulpdu   []byte
	wire    string // in hex; … stands for octets that are not spelled out
}

func goldens(t testing.TB) []golden {
	send := func(msn byte, payload []byte) []byte { return append(sendHeader(msn), payload...) }
	zero, aa := make([]byte, 24), bytes.Repeat([]byte{0xaa}, 485)
	hdr := "4143 00000000 00000000 000000"
	hex := func(s string) []byte { return unhex(t, s) }
	return []golden{
		// RFC 5044 figure 5: marker, length, DDP header, payload, CRC.
		{"figure 5", 0, true, send(1, zero), "00000000 002a " + hdr + "01 00000000 … 52239983"},
		// Figure 6: the marker, at 512, points 20 octets back.
		{"figure 6", 492, true, send(2, zero), "002a " + hdr + "02 00000000 00000014 … 84925898"},
		{"figure 5 without markers", 0, false, send(1, zero), "002a " + hdr + "01 00000000 … b7243ec3"},
		{"figure 6 without markers", 492, false, send(2, zero), "002a " + hdr + "02 00000000 … 290fbede"},
		{"before figure 6", 0, true, send(1, make([]byte, 464)), "00000000 01e2 " + hdr + "01 00000000 … a01ee4fd"},
		{"three markers", 0, true, send(1, ramp(1000)), "00000000 03fa " + hdr + "01 00000000 … 5f7b58ca"},
		{"none after three", 1036, true, send(2, nil), "0012 " + hdr + "02 00000000 accbdb8c"},
		// The marker, at 512, is directly before the CRC and under it.
		{"marker before the CRC", 0, true, send(1, aa), "00000000 01f7 " + hdr + "01 00000000 … 000000 000001fc 4b828c88"},
		{"CRC up to the grid", 0, true, send(1, aa[:481]), "00000000 01f3 " + hdr + "01 00000000 … 50a4812d"},
		{"marker between FPDUs", 512, true, send(2, nil), "00000000 0012 " + hdr + "02 00000000 7c71e5b4"},
		{"marker splits the header", 508, true, send(3, nil), "0012 4143 00000004 00000000 00000000 00000003 00000000 a7f2335c"},
		// RFC 6581's ready-to-receive messages: Write, Read Request, Send.
		{"Write RTR", 0, false, hex("c140 00000000 00000000 00000000"), "000e c140 00000000 00000000 00000000 a30572ab"},
		{"Write RTR, marked", 0, true, hex("c140 00000000 00000000 00000000"), "00000000 000e c140 … 77c9c755"},
		{"Read RTR", 0, false, append(hex("4141 00000000 00000001 00000001 00000000"), make([]byte, 28)...), "002e 4141 … f2c6dd3d"},
		{"Read RTR, marked", 0, true, append(hex("4141 00000000 00000001 00000001 00000000"), make([]byte, 28)...), "00000000 002e 4141 … 8176377e"},
		{"Read RTR's answer", 0, false, hex("c142 00000000 00000000 00000000"), "000e c142 00000000 00000000 00000000 6975d6ca"},
		{"Send RTR", 0, false, send(1, nil), "0012 " + hdr + "01 00000000 587be8c4"},
		{"Send RTR, marked", 0, true, send(1, nil), "00000000 0012 " + hdr + "01 00000000 88c1d6fc"},
		// Terminate messages of MPA: CRC error, local failure, IRD, no RTR.
		{"Terminate 2/0/2", 0, false, hex("4147 00000000 00000002 00000001 00000000 20020000"), "0016 4147 … 20020000 7fe42585"},
		{"Terminate 2/0/5", 0, false, hex("4147 00000000 00000002 00000001 00000000 20050000"), "0016 4147 … 20050000 1680d5f1"},
		{"Terminate 2/0/6", 0, false, hex("4147 00000000 00000002 00000001 00000000 20060000"), "0016 4147 … 20060000 6540fb1b"},
		{"Terminate 2/0/7", 0, false, hex("4147 00000000 00000002 00000001 00000000 20070000"), "0016 4147 … 20070000 1bd2babe"},
	}
}

// Figure 5 has its CRC over the leading marker too; figure 6 its marker inside.
//
// Claims: MPA-4.1-1 MPA-4.2-1 MPA-4.2-4 MPA-4.3-5 MPA-4.4-1 MPA-4.4-10 MPA-4.4-11 MPA-4.4-12
// Claims: MPA-4.3-4 MPA-4.3-7 MPA-7.1.2-15
// Claims: R-1.3-1
func TestFramesAreTheOctetsOfTheStandard(t *testing.T) {
	for _, g := range goldens(t) {
		t.Run(g.name, func(t *testing.T) {
			got := encode(g.pos, g.ulpdu, g.markers, true)
			front, back, Open := bytes.Cut([]byte(g.wire), []byte("…"))
			if f := unhex(t, string(front)); !bytes.HasPrefix(got, f) {
				t.Errorf("begins with %x, expected %x", got[:min(len(f), len(got))], f)
			}
			if b := unhex(t, string(back)); Open && !bytes.HasSuffix(got, b) {
				t.Errorf("ends with %x, expected %x", got[len(got)-len(b):], b)
			}
			if f := unhex(t, string(front)); !Open && len(got) != len(f) {
				t.Errorf("%d octets, expected %d", len(got), len(f))
			}
			u, err := decode(got, g.pos, g.markers, true)
			if err != nil || len(u) != 1 || !bytes.Equal(u[0], g.ulpdu) {
				t.Errorf("decodes to %x, %v", u, err)
			}
		})
	}
}

// Claims: MPA-2-3 MPA-4.1-2 MPA-4.1-3 MPA-4.1-5
func TestPadIsZeroAndFillsUpToFourOctets(t *testing.T) {
	for n, pad := range []int{1: 1, 2: 0, 3: 3, 4: 2, 5: 1, 6: 0, 7: 3, 8: 2} {
		if n == 0 {
			continue
		}
		for _, markers := range []bool{false, true} {
			f := encode(4, pattern(n, 0xff), markers, true)
			if want := 2 + n + pad + 4; len(f) != want {
				t.Errorf("a ULPDU of %d octets makes an FPDU of %d, expected %d", n, len(f), want)
			}
			if got := binary.BigEndian.Uint16(f); int(got) != n {
				t.Errorf("length field %d, expected %d", got, n)
			}
			if got := f[2+n : 2+n+pad]; !bytes.Equal(got, make([]byte, pad)) {
				t.Errorf("pad after %d octets is %x, expected zeros", n, got)
			}
		}
	}
}

// Claims: MPA-4.1-1 MPA-4.1-5 MPA-4.4-9
func TestFramesOfEveryLengthAreThoseOfTheReference(t *testing.T) {
	for _, markers := range []bool{false, true} {
		for _, crc := range []bool{false, true} {
			ref := fpdutest.Stream{Markers: markers, CRC: crc}
			for n := 1; n <= 2000; n++ {
				pos := ref.Pos
				u := pattern(n, n)
				want := ref.Send(u)
				if got := encode(pos, u, markers, crc); !bytes.Equal(got, want) {
					t.Fatalf("markers %t, crc %t, position %d, length %d:\n%x, expected\n%x", markers, crc, pos, n, got, want)
				}
				if len(want)%4 != 0 {
					t.Fatalf("length %d makes a frame of %d octets, no multiple of 4", n, len(want))
				}
				if got, err := decode(want, pos, markers, crc); err != nil || len(got) != 1 || !bytes.Equal(got[0], u) {
					t.Fatalf("markers %t, crc %t, position %d, length %d decodes to %x, %v", markers, crc, pos, n, got, err)
				}
			}
		}
	}
}

// The longest FPDU fits into what the reader keeps for it, wherever it begins.
//
// Claims: MPA-A.5.2-1
func TestTheLongestFrameIsOfTheLengthReservedForIt(t *testing.T) {
	longest := 0
	for pos := uint64(0); pos < 512; pos += 4 {
		longest = max(longest, Size(pos, MaxULPDU, true))
	}
	if longest != MaxSize {
		t.Errorf("the longest FPDU has %d octets, expected %d", longest, MaxSize)
	}
}

// Claims: MPA-4.4-13 MPA-4.3-9 MPA-8-2 MPA-6-1
func TestAnyBitThatFlipsIsACRCError(t *testing.T) {
	u := pattern(600, 5)
	wire := encode(0, u, true, true)
	for bit := range 8 * len(wire) {
		bad := bytes.Clone(wire)
		bad[bit/8] ^= 1 << (bit % 8)
		if bit/8 == 4 || bit/8 == 5 {
			continue // another length: another frame
		}
		if got, err := decode(bad, 0, true, true); !isDamage(err, true) || len(got) != 0 {
			t.Fatalf("bit %d flipped: %v and %d ULPDUs, expected code 2 and none", bit, err, len(got))
		}
	}
}

// Claims: MPA-4.1-4
func TestPadIsIgnoredExceptInTheCRC(t *testing.T) {
	wire := encode(4, []byte{1, 2, 3}, false, true) // 0003 010203 000000 crc
	bad := bytes.Clone(wire)
	bad[6] = 0x55
	if _, err := decode(bad, 4, false, true); !isDamage(err, true) {
		t.Errorf("pad changed: %v, expected code 2", err)
	}
	putCRC(bad, true)
	got, err := decode(bad, 4, false, true)
	if err != nil || !bytes.Equal(got[0], []byte{1, 2, 3}) {
		t.Errorf("pad changed under its CRC: %x, %v, expected the ULPDU", got, err)
	}
}

// Claims: MPA-4.1-6 MPA-4.4-7 MPA-4.4-9 MPA-7.1.1-6
func TestWithoutCRCTheFieldIsThereAndMayHoldAnything(t *testing.T) {
	u := pattern(30, 1)
	wire := encode(0, u, false, false)
	if len(wire) != len(encode(0, u, false, true)) {
		t.Error("the CRC field is missing")
	}
	copy(wire[len(wire)-4:], "junk")
	got, err := decode(wire, 0, false, false)
	if err != nil || !bytes.Equal(got[0], u) {
		t.Errorf("%x, %v, expected the ULPDU", got, err)
	}
}

func TestTheCodecAllocatesNothing(t *testing.T) {
	u := pattern(1500, 1)
	header, payload := u[:18], [][]byte{u[18:]}
	for _, markers := range []bool{false, true} {
		f := make([]byte, Size(0, len(u), markers))
		if n := testing.AllocsPerRun(100, func() {
			put(f, 0, len(u), header, payload, markers, true)
			n, size, _ := At(f, 0, markers)
			if _, err := Open(f[:size], 0, n, markers, true); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("markers %t: %v allocations a frame, expected none", markers, n)
		}
	}
}

// FuzzFrames compares both directions of the codec with the reference, over a
// stream that the input spells: for each ULPDU two octets of length.
func FuzzFrames(f *testing.F) {
	f.Add([]byte{0, 1, 1, 247, 0, 18}, uint16(0), true, true)
	f.Add([]byte{3, 250, 0, 18}, uint16(492), true, false)
	f.Add([]byte{253, 0}, uint16(4), false, true)
	f.Fuzz(func(t *testing.T, lengths []byte, at uint16, markers, crc bool) {
		pos := uint64(at) &^ 3
		ref := fpdutest.Stream{Markers: markers, CRC: crc, Pos: pos}
		var want [][]byte
		var wire []byte
		for pair := range slices.Chunk(lengths[:min(len(lengths), 20)], 2) {
			n := int(pair[0])<<8 | int(pair[len(pair)-1])
			if n == 0 || n > MaxULPDU {
				continue
			}
			u := pattern(n, len(wire))
			here := ref.Pos
			w := ref.Send(u)
			if got := encode(here, u, markers, crc); !bytes.Equal(got, w) {
				t.Fatalf("position %d, length %d: the frame differs from the reference's", here, n)
			}
			want, wire = append(want, u), append(wire, w...)
		}
		got, err := decode(wire, pos, markers, crc)
		if err != nil || !slices.EqualFunc(got, want, bytes.Equal) {
			t.Fatalf("%d ULPDUs decoded, expected %d; %v", len(got), len(want), err)
		}
	})
}

// BenchmarkCodec is FPDUs put together and taken apart in memory.
func BenchmarkCodec(b *testing.B) {
	for _, n := range []int{64, 1454, 64768} {
		for _, markers := range []bool{false, true} {
			for _, crc := range []bool{false, true} {
				name := fmt.Sprintf("%d/markers=%t/crc=%t", n, markers, crc)
				b.Run("put/"+name, func(b *testing.B) { benchmarkPut(b, n, markers, crc) })
				b.Run("open/"+name, func(b *testing.B) { benchmarkOpen(b, n, markers, crc) })
			}
		}
	}
}

func benchmarkPut(b *testing.B, n int, markers, crc bool) {
	u := pattern(n, 1)
	header, payload := u[:18], [][]byte{u[18:]}
	f := make([]byte, Size(0, n, markers))
	b.SetBytes(int64(n))
	b.ReportAllocs()
	for b.Loop() {
		put(f, 0, n, header, payload, markers, crc)
	}
}

func benchmarkOpen(b *testing.B, n int, markers, crc bool) {
	f := make([]byte, Size(0, n, markers))
	put(f, 0, n, nil, [][]byte{pattern(n, 1)}, markers, crc)
	g := bytes.Clone(f)
	if markers || crc { // else payload is not looked at
		b.SetBytes(int64(n))
	}
	b.ReportAllocs()
	for b.Loop() {
		if markers {
			copy(g, f) // Open takes them out
		}
		if _, err := Open(g, 0, n, markers, crc); err != nil {
			b.Fatal(err)
		}
	}
}
