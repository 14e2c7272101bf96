// The batch: frames gathered, written in parts, dropped.

package fpdu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// append adds a frame as Conn.Append does, and appendCopy as Conn.AppendVolatile.
func (b *Batch) append(n int, header []byte, payload [][]byte) {
	b.Add(n, header, payload, b.Refers(n))
}

func (b *Batch) appendCopy(n int, header []byte, payload [][]byte) { b.Add(n, header, payload, false) }

// appendGuarded is append as its callers use it: the error is a fault in payload.
func (b *Batch) appendGuarded(n int, header []byte, payload [][]byte) (fault error) {
	defer func() {
		if fault != nil {
			b.Truncate(b.Appended())
		}
	}()
	defer pages.Catch(&fault, payload, pages.Trap())
	b.append(n, header, payload)
	return nil
}

// octetsOf is what a batch has still to write.
func octetsOf(b *Batch) []byte {
	if b.Empty() {
		return nil
	}
	return bytes.Join(b.pieces[b.first:], nil)
}

// Claims: MPA-4.1-3 MPA-4.4-6 MPA-4.4-11
func TestABatchIsTheFramesInOrderHoweverPayloadIsCut(t *testing.T) {
	for _, b := range []Batch{{}, {CRC: true}, {Refer: CopyLimit}, {Refer: CopyLimit, CRC: true}, {Markers: true, CRC: true}} {
		t.Run(fmt.Sprintf("refer=%d/crc=%t/markers=%t", b.Refer, b.CRC, b.Markers), func(t *testing.T) {
			ref := fpdutest.Stream{Markers: b.Markers, CRC: b.CRC}
			r := rand.New(rand.NewPCG(3, 4))
			sent := uint64(0)
			for range 5 { // batches
				var want []byte
				for range 40 {
					if r.IntN(4) == 0 {
						headers, payloads := pattern(14*6, r.IntN(256)), make([][]byte, 1+r.IntN(6))
						for i := range payloads {
							payloads[i] = pattern(1+r.IntN(600), r.IntN(256))
							want = append(want, ref.Send(slices.Concat(headers[14*i:][:14], payloads[i]))...)
						}
						sent += uint64(len(payloads))
						b.AddRun(headers, 14, payloads)
						continue
					}
					u := pattern(1+r.IntN(3*CopyLimit), r.IntN(256))
					var cuts [][]byte
					h := min(len(u), 1+r.IntN(30))
					for rest := u[h:]; len(rest) > 0; {
						k := min(len(rest), r.IntN(2*CopyLimit))
						cuts = append(cuts, rest[:k])
						rest = rest[k:]
					}
					if r.IntN(4) == 0 {
						b.appendCopy(len(u), u[:h], cuts)
					} else {
						b.append(len(u), u[:h], cuts)
					}
					want = append(want, ref.Send(u)...)
					sent++
				}
				if got := octetsOf(&b); !bytes.Equal(got, want) {
					t.Fatal("the batch differs from the reference's stream")
				}
				b.Wrote(len(want))
			}
			if b.Appended() != sent || b.Written() != sent || !b.Empty() {
				t.Errorf("%d appended, %d written, expected %d", b.Appended(), b.Written(), sent)
			}
		})
	}
}

func TestLongPayloadIsReferredToAndShortIsCopied(t *testing.T) {
	b := Batch{Refer: CopyLimit, CRC: true}
	long, short := pattern(CopyLimit, 1), pattern(CopyLimit-1, 2)
	header := pattern(18, 3)
	b.append(18+len(long)+len(short), header, [][]byte{long, short})
	if len(b.pieces) != 3 {
		t.Fatalf("%d pieces, expected header, payload referred to, and the rest", len(b.pieces))
	}
	if &b.pieces[1][0] != &long[0] {
		t.Error("long payload was copied")
	}
	want := octetsOf(&b)
	clear(short)
	clear(header)
	if !bytes.Equal(octetsOf(&b), want) {
		t.Error("header or short payload was not copied")
	}
}

func TestPayloadIsCopiedWhateverItsLengthWhereThatIsAskedFor(t *testing.T) {
	b := Batch{Refer: CopyLimit, CRC: true}
	first, second := pattern(3*CopyLimit, 1), pattern(CopyLimit, 2)
	b.appendCopy(len(first)+len(second), nil, [][]byte{first, second})
	want := octetsOf(&b)
	clear(first)
	clear(second)
	if len(b.pieces) != 1 || !bytes.Equal(octetsOf(&b), want) {
		t.Errorf("%d pieces, expected one that has nothing of the payload's memory", len(b.pieces))
	}
}

// Claims: MPA-5.1-4
func TestSmallFramesAreOnePiece(t *testing.T) {
	b := Batch{Refer: CopyLimit}
	b.append(64, pattern(64, 0), nil)
	b.Wrote(b.octets) // the arena is there
	for i := range 40 {
		b.append(80, pattern(18, i), [][]byte{pattern(62, i)})
	}
	if len(b.pieces) != 1 {
		t.Errorf("40 small frames are %d pieces, expected 1", len(b.pieces))
	}
}

func TestFramesCountAsWrittenWhenTheirLastOctetIs(t *testing.T) {
	b := Batch{Refer: CopyLimit}
	ends := []int{}
	for i := range 4 {
		n := []int{50, CopyLimit + 100, 7, 3 * CopyLimit}[i]
		b.append(n, nil, [][]byte{pattern(n, i)})
		ends = append(ends, b.octets)
	}
	all := octetsOf(&b)
	for at := 1; at <= len(all); at++ {
		b.Wrote(1)
		want := 0
		for _, e := range ends {
			if e <= at {
				want++
			}
		}
		if got := b.Written(); got != uint64(want) {
			t.Fatalf("%d octets written: %d frames counted, expected %d", at, got, want)
		}
		if !bytes.Equal(octetsOf(&b), all[at:]) {
			t.Fatalf("%d octets written: what remains is not what follows", at)
		}
	}
}

// After the frames that have begun, another may follow at once, and with
// markers it stands on the same grid.
func TestTruncateKeepsWhatHasBegunAndTheStreamGoesOnBehindIt(t *testing.T) {
	sizes := []int{300, CopyLimit + 5, 40, 511, 2 * CopyLimit}
	for _, base := range []Batch{{Refer: CopyLimit}, {Markers: true, CRC: true}} {
		for from := range uint64(7) {
			for wrote := 0; wrote < 9000; wrote += 41 {
				b := base
				ref := fpdutest.Stream{Markers: b.Markers, CRC: b.CRC}
				b.append(100, nil, [][]byte{pattern(100, 9)}) // an earlier batch
				ref.Send(pattern(100, 9))
				b.Wrote(b.octets)
				var frames [][]byte
				for i, n := range sizes {
					b.append(n, nil, [][]byte{pattern(n, i)})
				}
				if wrote >= b.octets {
					break
				}
				for i, n := range sizes {
					pos := ref.Pos
					f := ref.Send(pattern(n, i))
					begun := pos-(b.Pos) < uint64(wrote)
					if !begun && uint64(i)+1 >= from {
						ref.Pos = pos // it and the rest are dropped
						break
					}
					frames = append(frames, f)
				}
				b.Wrote(wrote)
				before := b.Written()
				b.Truncate(from)
				if got, want := b.Appended(), 1+uint64(len(frames)); got != want {
					t.Fatalf("from %d after %d octets: %d frames remain, expected %d", from, wrote, got, want)
				}
				if got := b.Written(); got != before {
					t.Fatalf("from %d after %d octets: %d frames written, expected still %d", from, wrote, got, before)
				}
				b.append(22, pattern(22, 77), nil)
				want := append(bytes.Join(frames, nil), ref.Send(pattern(22, 77))...)[wrote:]
				if got := octetsOf(&b); !bytes.Equal(got, want) {
					t.Fatalf("from %d after %d octets:\n%x\nremains to be written, expected\n%x", from, wrote, got, want)
				}
				b.Wrote(len(want))
				if !b.Empty() || b.Pos != ref.Pos {
					t.Fatalf("from %d after %d octets: the stream is at %d, expected %d", from, wrote, b.Pos, ref.Pos)
				}
			}
		}
	}
}

func TestABatchIsFullAtItsLimits(t *testing.T) {
	for _, v := range []struct {
		name    string
		n       int
		payload func() [][]byte
		most    int
		append  func(b *Batch, n int, header []byte, payload [][]byte)
	}{
		{"octets copied", CopyLimit - 4, func() [][]byte { return [][]byte{pattern(CopyLimit-4, 0)} }, batchCopied/(CopyLimit-4) + 1, (*Batch).append},
		{"long octets copied", 64768, func() [][]byte { return [][]byte{pattern(64768, 0)} }, batchCopied/64768 + 1, (*Batch).appendCopy},
		{"octets", 64768, func() [][]byte { return [][]byte{pattern(64768, 0)} }, batchOctets/64768 + 1, (*Batch).append},
		{"frames", 4, func() [][]byte { return [][]byte{pattern(4, 0)} }, batchFrames, (*Batch).append},
		{"pieces", 20 * CopyLimit, func() (p [][]byte) {
			for range 20 {
				p = append(p, pattern(CopyLimit, 0))
			}
			return p
		}, batchPieces / 20, (*Batch).append},
	} {
		b := Batch{Refer: CopyLimit}
		frames := 0
		for b.Room() && frames <= v.most {
			v.append(&b, v.n, nil, v.payload())
			frames++
		}
		if frames > v.most {
			t.Errorf("%s: room for more than %d frames", v.name, v.most)
		}
		if cap(b.arena) > arenaLimit {
			t.Errorf("%s: an arena of %d octets, expected at most %d", v.name, cap(b.arena), arenaLimit)
		}
		b.Wrote(b.octets)
		if !b.Room() {
			t.Errorf("%s: no room in an empty batch", v.name)
		}
		v.append(&b, v.n, nil, v.payload())
		if !b.Room() {
			t.Errorf("%s: no room for a second frame in the next batch", v.name)
		}
	}
}

func TestAWrittenBatchKeepsNoMemoryOfTheULP(t *testing.T) {
	b := Batch{Refer: CopyLimit}
	b.append(CopyLimit, nil, [][]byte{pattern(CopyLimit, 1)})
	space := b.batchSpace
	b.Wrote(b.octets)
	if !b.Empty() {
		t.Error("a batch that was written is not empty")
	}
	for _, p := range space.pieces[:cap(space.pieces)] {
		if p != nil {
			t.Error("a piece of a written batch is kept")
		}
	}
}
