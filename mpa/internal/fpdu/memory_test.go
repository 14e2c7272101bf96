//go:build unix

package fpdu

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// A frame whose payload cannot be read is not there, and those before and after it are
// as they would be without.
func TestAFrameThatCannotBeReadIsNotAppended(t *testing.T) {
	none := pagestest.NoAccess(t, 2)
	for _, b := range []Batch{{}, {CRC: true}, {Refer: CopyLimit, CRC: true}, {Markers: true, CRC: true}} {
		for _, before := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("refer=%d/crc=%t/markers=%t/before=%d", b.Refer, b.CRC, b.Markers, before), func(t *testing.T) {
				b := b
				ref := fpdutest.Stream{Markers: b.Markers, CRC: b.CRC}
				var want []byte
				good := func(seed int) {
					u := pattern(5000, seed)
					b.append(len(u), u[:18], [][]byte{u[18:]})
					want = append(want, ref.Send(u)...)
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
					err := b.appendGuarded(n, pattern(18, 0), payload)
					if f := new(pages.Fault); !errors.As(err, &f) {
						t.Fatalf("%v, expected a fault", err)
					}
					if b.Appended() != uint64(before) || b.Empty() != (before == 0) {
						t.Errorf("%d frames, empty %t, expected %d", b.Appended(), b.Empty(), before)
					}
				}
				good(7)
				good(8)
				if got := octetsOf(&b); !bytes.Equal(got, want) || b.octets != len(want) {
					t.Error("the batch differs from the reference's stream")
				}
				b.Wrote(len(want))
				if !b.Empty() || b.Written() != uint64(before)+2 {
					t.Errorf("%d written, expected %d", b.Written(), before+2)
				}
			})
		}
	}
}

// Which frame it is that the system cannot read is found in the batch.
func TestTheFrameThatCannotBeReadIsFound(t *testing.T) {
	page := pagestest.Page
	mem := pagestest.Plain(t, 8)
	b := Batch{Refer: CopyLimit}
	for i := range 4 {
		b.append(18+2*page, pattern(18, i), [][]byte{mem[2*i*page:][:2*page]})
	}
	if _, err := b.Unreadable(); err != nil {
		t.Errorf("%v, expected that all can be read", err)
	}
	pagestest.Protect(t, mem[5*page:6*page], 0)
	for wrote := 0; ; { // also where frames before it, and half of it, have been written
		frame, err := b.Unreadable()
		if err == nil || frame != 2 {
			t.Fatalf("after %d octets: frame %d, %v, expected frame 2", wrote, frame, err)
		}
		if wrote > b.ends[1]+page {
			break
		}
		b.Wrote(page)
		wrote += page
	}
}

// Of a run in which payload cannot be read nothing is there.
func TestARunThatCannotBeReadIsNotAppended(t *testing.T) {
	none := pagestest.NoAccess(t, 1)
	for _, b := range []Batch{{}, {Refer: CopyLimit, CRC: true}, {Markers: true, CRC: true}} {
		for _, before := range []int{0, 2} {
			b := b
			ref := fpdutest.Stream{Markers: b.Markers, CRC: b.CRC}
			var want []byte
			headers := pattern(14*3, 1)
			good := func(b *Batch) {
				payloads := [][]byte{pattern(64, 2), pattern(3, 3), pattern(200, 4)}
				for i, p := range payloads {
					want = append(want, ref.Send(append(headers[14*i:][:14:14], p...))...)
				}
				b.AddRun(headers, 14, payloads)
			}
			for range before {
				good(&b)
			}
			appended := b.Appended()
			for bad := range 3 {
				payloads := [][]byte{pattern(64, 2), pattern(3, 3), pattern(200, 4)}
				payloads[bad] = none[:64]
				fault := func() (fault error) {
					defer pages.Catch(&fault, payloads, pages.Trap())
					b.AddRun(headers, 14, payloads)
					return nil
				}()
				if f := new(pages.Fault); !errors.As(fault, &f) {
					t.Fatalf("%v, expected a fault", fault)
				}
				b.Truncate(appended)
				if b.Appended() != appended || b.Empty() != (before == 0) {
					t.Errorf("%d frames, empty %t, expected %d", b.Appended(), b.Empty(), appended)
				}
			}
			good(&b)
			if got := octetsOf(&b); !bytes.Equal(got, want) || b.octets != len(want) {
				t.Error("the batch differs from the reference's stream")
			}
		}
	}
}
