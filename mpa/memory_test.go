//go:build unix

package mpa

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/internal/pages"
	"github.com/weft-rdma/weft/internal/pages/pagestest"
	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// A Sink whose memory cannot be written is asked what that means, and the ULPDU behind that
// one is not handed up.
func TestAULPDUThatCannotBeWrittenEndsTheReception(t *testing.T) {
	s := &placing{place: pagestest.ReadOnly(t, 1)}
	var frames []byte
	for i := range 3 {
		frames = append(frames, new(fpdutest.Stream).Send(pattern(40, i))...)
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
	r := newReader(&stream{}, nil, Params{Early: new(fpdutest.Stream).Send(pattern(10, 1))}, new(atomic.Bool), new(counters))
	defer func() {
		if recover() == nil {
			t.Error("there was no panic, expected that of a slice out of bounds")
		}
	}()
	t.Error(r.deliver(&placing{}))
}
