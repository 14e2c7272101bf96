//go:build unix

package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
)

// A frame whose payload cannot be read is not there, and those before and after it are
// as they would be without.
func TestAFrameThatCannotBeReadIsNotAppended(t *testing.T) {
	none := pagestest.NoAccess(t, 2)
	for _, b := range []batch{{}, {crc: true}, {refer: copyLimit, crc: true}, {markers: true, crc: true}} {
		for _, before := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("refer=%d/crc=%t/markers=%t/before=%d", b.refer, b.crc, b.markers, before), func(t *testing.T) {
				b := b
				ref := refStream{markers: b.markers, crc: b.crc}
				var want []byte
				good := func(seed int) {
					u := pattern(5000, seed)
					if err := b.append(len(u), u[:18], [][]byte{u[18:]}); err != nil {
						t.Fatal(err)
					}
					want = append(want, ref.send(u)...)
				}
				for i := range before {
					good(i)
				}
				for _, payload := range [][][]byte{
					{none}, {pattern(9000, 1), none[:5]}, {pattern(30000, 2), none}, {pattern(3, 1), none[pagestest.Page-3:]},
				} {
					n := 18
					for _, p := range payload {
						n += len(p)
					}
					err := b.append(n, pattern(18, 0), payload)
					if f := new(pages.Fault); !errors.As(err, &f) {
						t.Fatalf("%v, expected a fault", err)
					}
					if b.appended() != uint64(before) || b.empty() != (before == 0) {
						t.Errorf("%d frames, empty %t, expected %d", b.appended(), b.empty(), before)
					}
				}
				good(7)
				good(8)
				if got := octetsOf(&b); !bytes.Equal(got, want) || b.octets != len(want) {
					t.Error("the batch differs from the reference's stream")
				}
				b.wrote(len(want))
				if !b.empty() || b.written() != uint64(before)+2 {
					t.Errorf("%d written, expected %d", b.written(), before+2)
				}
			})
		}
	}
}

// Which frame it is that the system cannot read is found in the batch.
func TestTheFrameThatCannotBeReadIsFound(t *testing.T) {
	page := pagestest.Page
	mem := pagestest.Plain(t, 8)
	b := batch{refer: copyLimit}
	for i := range 4 {
		b.append(18+2*page, pattern(18, i), [][]byte{mem[2*i*page:][:2*page]})
	}
	if f := b.unreadable(); f != nil {
		t.Errorf("%v, expected that all can be read", f)
	}
	pagestest.Protect(t, mem[5*page:6*page], 0)
	for wrote := 0; ; { // also where frames before it, and half of it, have been written
		f := b.unreadable()
		if f == nil || f.Frame != 2 || f.Err == nil {
			t.Fatalf("after %d octets: %+v, expected frame 2", wrote, f)
		}
		if wrote > b.ends[1]+page {
			break
		}
		b.wrote(page)
		wrote += page
	}
}
