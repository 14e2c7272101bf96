package ddp

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// A cut is one segment as Outbound gave it.
type cut struct {
	Off  uint32
	N    int
	Last bool
}

// RFC 5041 §5.2 works this example.
//
// Claims: DDP-4.1-4 DDP-4.1-5 DDP-4.1-7 DDP-4.3-10 DDP-5.2-6 DDP-5.2-8 MPA-4.5-4
func TestMessageIsCutAsTheRFCsExamples(t *testing.T) {
	const mulpdu, length = 1500, 2048
	var o Outbound
	o.StartUntagged(1, [5]byte{0x43}, 0, 1, length)
	for i, want := range []struct {
		h Untagged
		cut
	}{
		{Untagged{Version: 1, RsvdULP: [5]byte{0x43}, MSN: 1}, cut{0, 1482, false}},
		{Untagged{Last: true, Version: 1, RsvdULP: [5]byte{0x43}, MSN: 1, MO: 1482}, cut{1482, 566, true}},
	} {
		hdr, off, n, last := o.Next(mulpdu, nil)
		var h Untagged
		if !h.Parse(hdr) || len(hdr) != UntaggedLen || h != want.h || (cut{off, n, last}) != want.cut {
			t.Errorf("untagged segment %d: %+v %v, want %+v", i, h, cut{off, n, last}, want)
		}
	}
	if !o.Done() {
		t.Error("untagged message not done")
	}

	o.StartTagged(1, 0x40, 0x1234, 16384, length)
	for i, want := range []struct {
		h Tagged
		cut
	}{
		{Tagged{Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 16384}, cut{0, 1486, false}},
		{Tagged{Last: true, Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 17870}, cut{1486, 562, true}},
	} {
		hdr, off, n, last := o.Next(mulpdu, nil)
		var h Tagged
		if !h.Parse(hdr) || len(hdr) != TaggedLen || h != want.h || (cut{off, n, last}) != want.cut {
			t.Errorf("tagged segment %d: %+v %v, want %+v", i, h, cut{off, n, last}, want)
		}
	}
	if !o.Done() {
		t.Error("tagged message not done")
	}
}

// Whatever the length and however the MULPDU changes on the way, the segments
// cover the message without gap or overlap, in increasing order, none larger
// than the MULPDU of its moment, all of the same RsvdULP, STag, QN and MSN, the
// last and only the last with its L bit set.
//
// Claims: DDP-2.3-3 DDP-3-1 DDP-4.1-4 DDP-4.1-5 DDP-4.1-6 DDP-4.1-7
// Claims: DDP-4.1-8 DDP-4.1-10 DDP-4.2-2 DDP-4.2-4 DDP-4.3-2 DDP-4.3-5
// Claims: DDP-4.3-10 DDP-5.2-1 DDP-5.2-3 DDP-5.2-6 DDP-5.2-7 DDP-5.2-8 DDP-5.3-2 MPA-3-3
func TestSegmentsCoverTheMessageUnderAChangingMULPDU(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		length := uint32(rng.IntN(200_000))
		if rng.IntN(4) == 0 {
			length = uint32(rng.IntN(300)) // many that end right at a boundary
		}
		rsvd := [5]byte{byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32()), byte(rng.Uint32())}
		stag, to, qn, msn := rng.Uint32(), rng.Uint64(), rng.Uint32(), rng.Uint32()
		tagged := rng.IntN(2) == 0
		var o Outbound
		if tagged {
			o.StartTagged(1, rsvd[0], stag, to, length)
		} else {
			o.StartUntagged(1, rsvd, qn, msn, length)
		}
		var covered uint32
		for done := false; !done; {
			mulpdu := 128 + rng.IntN(64768-128+1)
			peek, at := o.Peek(mulpdu), o.Offset()
			hdr, off, n, last := o.Next(mulpdu, nil)
			if len(hdr)+n > mulpdu {
				t.Fatalf("segment of %d octets with MULPDU %d", len(hdr)+n, mulpdu)
			}
			if off != covered || off != at || n != peek {
				t.Fatalf("segment [%d, +%d), expected at %d; announced [%d, +%d)", off, n, covered, at, peek)
			}
			covered += uint32(n)
			if last != (covered == length) || o.Done() != last || o.Remaining() != length-covered {
				t.Fatalf("last %v, done %v, remaining %d after %d of %d octets", last, o.Done(), o.Remaining(), covered, length)
			}
			if hdr[0]&0x3C != 0 || hdr[0]&0x03 != 1 {
				t.Fatalf("control field %#02x", hdr[0])
			}
			var th Tagged
			var uh Untagged
			if tagged {
				if want := (Tagged{last, 1, rsvd[0], stag, to + uint64(off)}); !th.Parse(hdr) || th != want {
					t.Fatalf("header %+v, want %+v", th, want)
				}
			} else {
				if want := (Untagged{last, 1, rsvd, qn, msn, off}); !uh.Parse(hdr) || uh != want {
					t.Fatalf("header %+v, want %+v", uh, want)
				}
			}
			done = last
		}
		if covered != length {
			t.Fatalf("%d of %d octets sent", covered, length)
		}
	}
}

// Claims: DDP-4.4-1 DDP-5.2-9
func TestZeroLengthMessageIsOneSegment(t *testing.T) {
	var o Outbound
	if !o.Done() {
		t.Error("an Outbound without a message is not done")
	}
	o.StartUntagged(1, [5]byte{0x43}, 0, 1, 0)
	if o.Done() {
		t.Fatal("untagged: done before its segment")
	}
	hdr, off, n, last := o.Next(1500, nil)
	if len(hdr) != UntaggedLen || off != 0 || n != 0 || !last || !o.Done() {
		t.Errorf("untagged: header of %d octets, [%d, +%d), last %v, done %v", len(hdr), off, n, last, o.Done())
	}
	o.StartTagged(1, 0x40, 0, 0, 0)
	if o.Done() {
		t.Fatal("tagged: done before its segment")
	}
	hdr, off, n, last = o.Next(1500, nil)
	if len(hdr) != TaggedLen || off != 0 || n != 0 || !last || !o.Done() {
		t.Errorf("tagged: header of %d octets, [%d, +%d), last %v, done %v", len(hdr), off, n, last, o.Done())
	}
}

// The longest message that can be expressed is 2^32-1 octets; MO and TO stay
// right to its end, the TO even when the memory ends at 2^64.
//
// Claims: DDP-1.2-1 DDP-5.2-2 DDP-5.2-3 DDP-5.2-6 DDP-5.2-8
func TestLongestMessageIsCutToItsLastOctet(t *testing.T) {
	const length = math.MaxUint32
	const mulpdu = 64768
	for _, tagged := range []bool{false, true} {
		var o Outbound
		const to = uint64(math.MaxUint64 - length + 1) // the last octet is number 2^64-1
		if tagged {
			o.StartTagged(1, 0, 1, to, length)
		} else {
			o.StartUntagged(1, [5]byte{}, 0, 1, length)
		}
		var sum, segments uint64
		var buf [UntaggedLen]byte
		var off uint32
		var hdr []byte
		for !o.Done() {
			var n int
			hdr, off, n, _ = o.Next(mulpdu, buf[:0])
			if uint64(off) != sum {
				t.Fatalf("tagged %v: offset %d, want %d", tagged, off, sum)
			}
			sum += uint64(n)
			segments++
		}
		if sum != length {
			t.Errorf("tagged %v: %d octets sent, want %d", tagged, sum, uint64(length))
		}
		if tagged {
			var h Tagged
			if h.Parse(hdr); h.TO != to+uint64(off) || h.TO < to {
				t.Errorf("last TO %#x, want %#x", h.TO, to+uint64(off))
			}
		} else {
			var h Untagged
			if h.Parse(hdr); h.MO != off {
				t.Errorf("last MO %d, want %d", h.MO, off)
			}
		}
	}
}

func TestMULPDUBelowTheLeastCountsAsTheLeast(t *testing.T) {
	var o Outbound
	o.StartUntagged(1, [5]byte{}, 0, 1, 1000)
	for _, mulpdu := range []int{-1, 0, 18, 127, 128} {
		if _, _, n, _ := o.Next(mulpdu, nil); n != 128-UntaggedLen {
			t.Errorf("MULPDU %d: %d octets of payload, want %d", mulpdu, n, 128-UntaggedLen)
		}
	}
}

func TestCuttingAllocatesNothing(t *testing.T) {
	var o Outbound
	var buf [UntaggedLen]byte
	if n := testing.AllocsPerRun(100, func() {
		o.StartTagged(1, 0x40, 1, 2, 5000)
		for !o.Done() {
			o.Next(1500, buf[:0])
		}
		o.StartUntagged(1, [5]byte{0x43}, 0, 1, 5000)
		for !o.Done() {
			o.Next(1500, buf[:0])
		}
	}); n != 0 {
		t.Errorf("%v allocations a message", n)
	}
}

// BenchmarkCut is messages cut into segments for a MULPDU: headers alone, as
// payload stays where it is.
func BenchmarkCut(b *testing.B) {
	for _, tt := range []struct{ length, mulpdu int }{{64, 1440}, {64 << 10, 1440}, {1 << 20, 64768}} {
		for _, is := range []string{"tagged", "untagged"} {
			b.Run(fmt.Sprintf("%s/%d by %d", is, tt.length, tt.mulpdu), func(b *testing.B) {
				var o Outbound
				var buf [UntaggedLen]byte
				b.ReportAllocs()
				for b.Loop() {
					if is == "tagged" {
						o.StartTagged(1, 0x40, 1, 2, uint32(tt.length))
					} else {
						o.StartUntagged(1, [5]byte{0x43}, 0, 1, uint32(tt.length))
					}
					for !o.Done() {
						o.Next(tt.mulpdu, buf[:0])
					}
				}
			})
		}
	}
}
