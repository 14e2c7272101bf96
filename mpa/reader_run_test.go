package mpa

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// A runner is a sink that takes several ULPDUs at a time.
type runner struct {
	collector
	runs []int // how many it took in each call of ULPDUs
}

func (r *runner) ULPDUs(us [][]byte) error {
	r.runs = append(r.runs, len(us))
	for _, u := range us {
		if err := r.ULPDU(u); err != nil {
			return err
		}
	}
	return nil
}

// ULPDUs that have arrived are handed up together, thirty-two or 24 KiB at most. Of the octets that
// start-up has read each is handed up by itself.
func TestULPDUsAreHandedUpTogether(t *testing.T) {
	for _, c := range []struct {
		lengths []int
		runs    []int
	}{
		{[]int{700}, []int{1}},
		{[]int{64, 1, 700, 64}, []int{4}},
		{append(slices.Repeat([]int{64}, mostInRun+2), 3), []int{mostInRun, 3}},
		{[]int{octetsInRun - 600, 600, 600, 600}, []int{2, 2}},
	} {
		for _, p := range everyTerms {
			want, wire, _ := wireOf(p, c.lengths...)
			s := &runner{}
			conn := feed(&fed{wire: wire}, p)
			if err := conn.Receive(s); err != io.EOF || !slices.EqualFunc(s.got, want, bytes.Equal) {
				t.Errorf("%v, %s: %v, %d ULPDUs arrived, expected %d, or they differ", c.lengths, termsName(p), err, len(s.got), len(want))
			}
			if !slices.Equal(s.runs, c.runs) {
				t.Errorf("%v, %s: runs of %v, expected %v", c.lengths, termsName(p), s.runs, c.runs)
			}
			if got := conn.Stats().FPDUsIn; got != uint64(len(want)) {
				t.Errorf("%v, %s: %d FPDUs counted, expected %d", c.lengths, termsName(p), got, len(want))
			}
			p.Early = wire
			s = &runner{}
			if err := feed(&fed{}, p).Receive(s); err != io.EOF || !slices.EqualFunc(s.got, want, bytes.Equal) || len(s.runs) > 0 {
				t.Errorf("%v, %s: early octets: %v, %d ULPDUs arrived, in runs of %v", c.lengths, termsName(p), err, len(s.got), s.runs)
			}
		}
	}
}

// What is in front of an FPDU that is damaged is handed up, and nothing behind it.
func TestWhatComesBeforeADamagedFPDUIsHandedUp(t *testing.T) {
	for _, damage := range []struct {
		name string
		at   int
		code Code
	}{{"CRC", 100, CodeCRC}, {"length", 0, CodeMarker}} {
		for bad := range 4 {
			p := Params{CRC: true}
			want, wire, ends := wireOf(p, 600, 600, 600, 600)
			wire[ends[bad]-ends[0]+damage.at] ^= 0xFD
			s := &runner{}
			conn := feed(&fed{wire: wire}, p)
			var e *Error
			if err := conn.Receive(s); !errors.As(err, &e) || e.Code != damage.code {
				t.Errorf("%s of FPDU %d: %v", damage.name, bad, err)
			}
			if !slices.EqualFunc(s.got, want[:bad], bytes.Equal) || conn.Stats().FPDUsIn != uint64(bad) {
				t.Errorf("%s of FPDU %d: %d ULPDUs were handed up, %d counted", damage.name, bad, len(s.got), conn.Stats().FPDUsIn)
			}
		}
	}
}

// A marker that is wrong is found once: validating an FPDU takes its markers out.
func TestAWrongMarkerBehindOtherFPDUsIsThatOfAMarker(t *testing.T) {
	p := Params{CRC: true, RecvMarkers: true}
	_, wire, ends := wireOf(p, 600, 600)
	marker := ends[0] + -ends[0]&(fpdu.MarkerSpacing-1)
	wire[marker+3] ^= 4
	crc := fpdutest.NewCRC()
	for _, b := range wire[ends[0] : ends[1]-fpdu.CRCSize] {
		crc.Add(b)
	}
	binary.LittleEndian.PutUint32(wire[ends[1]-fpdu.CRCSize:], crc.Sum())
	s := &runner{}
	var e *Error
	if err := feed(&fed{wire: wire}, p).Receive(s); !errors.As(err, &e) || e.Code != CodeMarker || len(s.got) != 1 {
		t.Errorf("%v, %d handed up", err, len(s.got))
	}
}

// The error of the sink comes before that of an FPDU behind.
func TestTheErrorOfTheSinkComesFirst(t *testing.T) {
	p := Params{CRC: true}
	_, wire, ends := wireOf(p, 600, 600, 600)
	wire[ends[1]+5] ^= 1
	s := &runner{}
	s.refuse = errors.New("refused")
	if err := feed(&fed{wire: wire}, p).Receive(s); err != s.refuse || len(s.got) != 1 {
		t.Errorf("%v, %d handed up", err, len(s.got))
	}
}

// A narrow sink would block for any but the first ULPDU.
type narrow struct{ runner }

func (n *narrow) WouldBlock([]byte) bool { return len(n.got) > 0 }

// What a visitor leaves to Receive is still what has arrived: validating an FPDU takes its
// markers out.
func TestAULPDUWithMarkersThatWouldBlockIsReceivedLater(t *testing.T) {
	p := Params{CRC: true, RecvMarkers: true}
	want, wire, _ := wireOf(p, 600, 600)
	s := &narrow{}
	r := newReader(&stream{}, nil, p, new(atomic.Bool), new(counters))
	r.blocks, r.visiting = s, true
	r.grown(copy(r.room(), wire))
	if err := r.deliver(s); err != nil || !r.blocked {
		t.Errorf("%v, blocked %t", err, r.blocked)
	}
	r.visiting, r.blocked = false, false
	if err := r.deliver(s); err != nil || !slices.EqualFunc(s.got, want, bytes.Equal) {
		t.Errorf("then %v, %d ULPDUs, expected %d", err, len(s.got), len(want))
	}
}

// A visitor asks about each ULPDU when those before it have been handed up.
func TestAVisitorAsksAboutEachULPDUInItsTurn(t *testing.T) {
	_, wire, _ := wireOf(Params{}, 600, 600, 600)
	s := &narrow{}
	r := newReader(&stream{}, nil, Params{}, new(atomic.Bool), new(counters))
	r.runs, r.blocks, r.visiting = s, s, true
	r.grown(copy(r.room(), wire))
	if err := r.deliver(s); err != nil || len(s.got) != 1 || !r.blocked {
		t.Errorf("%v, %d ULPDUs were handed up, expected the one that does not block", err, len(s.got))
	}
}
