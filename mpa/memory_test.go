//go:build unix

package mpa

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
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
					b.append(len(u), u[:18], [][]byte{u[18:]})
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
					err := b.appendGuarded(n, pattern(18, 0), payload)
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

// A Sink whose memory cannot be written is asked what that means, and the ULPDU behind that
// one is not handed up.
func TestAULPDUThatCannotBeWrittenEndsTheReception(t *testing.T) {
	s := &placing{place: pagestest.ReadOnly(t, 1)}
	var frames []byte
	for i := range 3 {
		frames = append(frames, new(refStream).send(pattern(40, i))...)
	}
	r := newReader(&stream{}, nil, Params{Early: frames}, new(atomic.Bool), new(counters))
	for range 2 {
		err := r.deliver(s)
		if f := new(pages.Fault); !errors.As(err, &f) {
			t.Errorf("%v, expected what Unwritable returns", err)
		}
	}
	if got := r.stats.framesIn.Load(); got != 2 || r.pos != uint64(2*len(frames)/3) {
		t.Errorf("%d frames counted up to position %d, expected each that was tried", got, r.pos)
	}
	s.place = make([]byte, 64)
	if err := r.deliver(s); err != nil || !bytes.Equal(s.place[:22], pattern(40, 2)[18:]) {
		t.Errorf("then %v, expected the last ULPDU", err)
	}
}

// A panic that is no fault of the Sink's memory goes on.
func TestAnotherPanicOfASinkGoesOn(t *testing.T) {
	r := newReader(&stream{}, nil, Params{Early: new(refStream).send(pattern(10, 1))}, new(atomic.Bool), new(counters))
	defer func() {
		if recover() == nil {
			t.Error("there was no panic, expected that of a slice out of bounds")
		}
	}()
	t.Error(r.deliver(&placing{}))
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
