package mpa

// The batch: frames gathered, written in parts, dropped.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weft-rdma/weft/internal/pages"
)

// append adds a frame as Conn.Append does, and appendCopy as Conn.AppendVolatile.
func (b *batch) append(n int, header []byte, payload [][]byte) {
	b.add(n, header, payload, b.refers(n))
}

func (b *batch) appendCopy(n int, header []byte, payload [][]byte) { b.add(n, header, payload, false) }

// appendGuarded is append as its callers use it: the error is a fault in payload.
func (b *batch) appendGuarded(n int, header []byte, payload [][]byte) (fault error) {
	defer func() {
		if fault != nil {
			b.truncate(b.appended())
		}
	}()
	defer pages.Catch(&fault, payload, pages.Trap())
	b.append(n, header, payload)
	return nil
}

// octetsOf is what a batch has still to write.
func octetsOf(b *batch) []byte {
	if b.empty() {
		return nil
	}
	return bytes.Join(b.pieces[b.first:], nil)
}

// Claims: MPA-4.1-3 MPA-4.4-6 MPA-4.4-11
func TestABatchIsTheFramesInOrderHoweverPayloadIsCut(t *testing.T) {
	for _, b := range []batch{{}, {crc: true}, {refer: copyLimit}, {refer: copyLimit, crc: true}, {markers: true, crc: true}} {
		t.Run(fmt.Sprintf("refer=%d/crc=%t/markers=%t", b.refer, b.crc, b.markers), func(t *testing.T) {
			ref := refStream{markers: b.markers, crc: b.crc}
			r := rand.New(rand.NewPCG(3, 4))
			for range 5 { // batches
				var want []byte
				for range 40 {
					u := pattern(1+r.IntN(3*copyLimit), r.IntN(256))
					var cuts [][]byte
					h := min(len(u), 1+r.IntN(30))
					for rest := u[h:]; len(rest) > 0; {
						k := min(len(rest), r.IntN(2*copyLimit))
						cuts = append(cuts, rest[:k])
						rest = rest[k:]
					}
					if r.IntN(4) == 0 {
						b.appendCopy(len(u), u[:h], cuts)
					} else {
						b.append(len(u), u[:h], cuts)
					}
					want = append(want, ref.send(u)...)
				}
				if got := octetsOf(&b); !bytes.Equal(got, want) {
					t.Fatal("the batch differs from the reference's stream")
				}
				b.wrote(len(want))
			}
			if b.appended() != 200 || b.written() != 200 || !b.empty() {
				t.Errorf("%d appended, %d written, expected 200", b.appended(), b.written())
			}
		})
	}
}

func TestLongPayloadIsReferredToAndShortIsCopied(t *testing.T) {
	b := batch{refer: copyLimit, crc: true}
	long, short := pattern(copyLimit, 1), pattern(copyLimit-1, 2)
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
	b := batch{refer: copyLimit, crc: true}
	first, second := pattern(3*copyLimit, 1), pattern(copyLimit, 2)
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
	b := batch{refer: copyLimit}
	b.append(64, pattern(64, 0), nil)
	b.wrote(b.octets) // the arena is there
	for i := range 40 {
		b.append(80, pattern(18, i), [][]byte{pattern(62, i)})
	}
	if len(b.pieces) != 1 {
		t.Errorf("40 small frames are %d pieces, expected 1", len(b.pieces))
	}
}

func TestFramesCountAsWrittenWhenTheirLastOctetIs(t *testing.T) {
	b := batch{refer: copyLimit}
	ends := []int{}
	for i := range 4 {
		n := []int{50, copyLimit + 100, 7, 3 * copyLimit}[i]
		b.append(n, nil, [][]byte{pattern(n, i)})
		ends = append(ends, b.octets)
	}
	all := octetsOf(&b)
	for at := 1; at <= len(all); at++ {
		b.wrote(1)
		want := 0
		for _, e := range ends {
			if e <= at {
				want++
			}
		}
		if got := b.written(); got != uint64(want) {
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
	sizes := []int{300, copyLimit + 5, 40, 511, 2 * copyLimit}
	for _, base := range []batch{{refer: copyLimit}, {markers: true, crc: true}} {
		for from := range uint64(7) {
			for wrote := 0; wrote < 9000; wrote += 41 {
				b := base
				ref := refStream{markers: b.markers, crc: b.crc}
				b.append(100, nil, [][]byte{pattern(100, 9)}) // an earlier batch
				ref.send(pattern(100, 9))
				b.wrote(b.octets)
				var frames [][]byte
				for i, n := range sizes {
					b.append(n, nil, [][]byte{pattern(n, i)})
				}
				if wrote >= b.octets {
					break
				}
				for i, n := range sizes {
					pos := ref.pos
					f := ref.send(pattern(n, i))
					begun := pos-(b.pos) < uint64(wrote)
					if !begun && uint64(i)+1 >= from {
						ref.pos = pos // it and the rest are dropped
						break
					}
					frames = append(frames, f)
				}
				b.wrote(wrote)
				before := b.written()
				b.truncate(from)
				if got, want := b.appended(), 1+uint64(len(frames)); got != want {
					t.Fatalf("from %d after %d octets: %d frames remain, expected %d", from, wrote, got, want)
				}
				if got := b.written(); got != before {
					t.Fatalf("from %d after %d octets: %d frames written, expected still %d", from, wrote, got, before)
				}
				b.append(22, pattern(22, 77), nil)
				want := append(bytes.Join(frames, nil), ref.send(pattern(22, 77))...)[wrote:]
				if got := octetsOf(&b); !bytes.Equal(got, want) {
					t.Fatalf("from %d after %d octets:\n%x\nremains to be written, expected\n%x", from, wrote, got, want)
				}
				b.wrote(len(want))
				if !b.empty() || b.pos != ref.pos {
					t.Fatalf("from %d after %d octets: the stream is at %d, expected %d", from, wrote, b.pos, ref.pos)
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
		append  func(b *batch, n int, header []byte, payload [][]byte)
	}{
		{"octets copied", copyLimit - 4, func() [][]byte { return [][]byte{pattern(copyLimit-4, 0)} }, batchCopied/(copyLimit-4) + 1, (*batch).append},
		{"long octets copied", 64768, func() [][]byte { return [][]byte{pattern(64768, 0)} }, batchCopied/64768 + 1, (*batch).appendCopy},
		{"octets", 64768, func() [][]byte { return [][]byte{pattern(64768, 0)} }, batchOctets/64768 + 1, (*batch).append},
		{"frames", 4, func() [][]byte { return [][]byte{pattern(4, 0)} }, batchFrames, (*batch).append},
		{"pieces", 20 * copyLimit, func() (p [][]byte) {
			for range 20 {
				p = append(p, pattern(copyLimit, 0))
			}
			return p
		}, batchPieces / 20, (*batch).append},
	} {
		b := batch{refer: copyLimit}
		frames := 0
		for b.room() && frames <= v.most {
			v.append(&b, v.n, nil, v.payload())
			frames++
		}
		if frames > v.most {
			t.Errorf("%s: room for more than %d frames", v.name, v.most)
		}
		if cap(b.arena) > arenaLimit {
			t.Errorf("%s: an arena of %d octets, expected at most %d", v.name, cap(b.arena), arenaLimit)
		}
		b.wrote(b.octets)
		if !b.room() {
			t.Errorf("%s: no room in an empty batch", v.name)
		}
		v.append(&b, v.n, nil, v.payload())
		if !b.room() {
			t.Errorf("%s: no room for a second frame in the next batch", v.name)
		}
	}
}

func TestAWrittenBatchKeepsNoMemoryOfTheULP(t *testing.T) {
	b := batch{refer: copyLimit}
	b.append(copyLimit, nil, [][]byte{pattern(copyLimit, 1)})
	space := b.batchSpace
	b.wrote(b.octets)
	if !b.empty() {
		t.Error("a batch that was written is not empty")
	}
	for _, p := range space.pieces[:cap(space.pieces)] {
		if p != nil {
			t.Error("a piece of a written batch is kept")
		}
	}
}
