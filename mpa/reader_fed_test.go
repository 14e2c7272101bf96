// A transport that gives the octets in any portions.

package mpa

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// A fed transport gives wire, at most portion() octets at a time, then end.
type fed struct {
	wire    []byte
	portion func() int
	end     error
	direct  bool           // it places
	before  func(read int) // called where a socket may wait
	given   int            // octets so far
	beyond  []int          // for each read that places, how far it went beyond
	until   []time.Time    // the deadlines set

	peeks func() int // how many octets have arrived; nil: a peek finds nothing
}

func (f *fed) close()                               {}
func (f *fed) share() *turns.Turns                  { return nil }
func (f *fed) look(*readAhead) (int, error)         { return 0, errors.ErrUnsupported }
func (f *fed) flush(*fpdu.Batch, Guard, bool) error { return errors.ErrUnsupported }

func (f *fed) SetReadDeadline(t time.Time) error {
	f.until = append(f.until, t)
	return nil
}

func (f *fed) next(room int) []byte {
	if f.before != nil {
		f.before(f.given)
	}
	n := min(room, f.portion(), len(f.wire))
	p := f.wire[:n]
	f.wire = f.wire[n:]
	f.given += n
	return p
}

func (f *fed) read(a *readAhead, _ bool) (int, error) {
	p := a.room()
	if len(p) == 0 {
		return 0, errors.New("a read of no octets")
	}
	if x := f.next(len(p)); len(x) > 0 {
		return copy(p, x), nil
	}
	return 0, f.end
}

func (f *fed) readWindows(s Sink, p *placement, more []byte) (int, error) {
	f.beyond = append(f.beyond, len(more))
	x := f.next(left(p) + len(more))
	pieces, err := p.place(s, more)
	if err != nil {
		return 0, windowError{err}
	}
	defer p.release(s)
	n := 0
	for _, w := range pieces {
		k := copy(w, x)
		x = x[k:]
		n += k
	}
	if n == 0 {
		return 0, f.end
	}
	return n, nil
}

// left is how many octets of the stream p still has to place.
func left(p *placement) int {
	n := p.end - p.off
	for _, g := range p.gaps[p.passed:] {
		n += g.n
	}
	return n
}

// peek finds what the next read would find.
func (f *fed) peek(at int, b []byte) bool {
	if f.peeks == nil || at+len(b) > min(f.peeks(), len(f.wire)) {
		return false
	}
	copy(b, f.wire[at:])
	return true
}

// Ways to portion.
func whole() int  { return 1 << 30 }
func single() int { return 1 }
func random(most int) func() int {
	r := rand.New(rand.NewPCG(5, 6))
	return func() int { return 1 + r.IntN(most) }
}

// feed is a Conn whose receiving half gets what f gives.
func feed(f *fed, p Params) *Conn {
	c := &Conn{params: p, transport: f}
	c.fenced.Store(!p.Initiator)
	if f.end == nil {
		f.end = io.EOF
	}
	if f.portion == nil {
		f.portion = whole
	}
	var d direct
	if f.direct {
		d = f
	}
	c.reader = newReader(f, d, p, &c.fenced, &c.stats)
	return c
}

var everyTerms = []Params{
	{},
	{CRC: true},
	{RecvMarkers: true},
	{CRC: true, RecvMarkers: true},
}

func termsName(p Params) string { return fmt.Sprintf("crc=%t/markers=%t", p.CRC, p.RecvMarkers) }

// wireOf is the octets of ULPDUs of the lengths given, and where each FPDU
// ends.
func wireOf(p Params, lengths ...int) (ulpdus [][]byte, wire []byte, ends []int) {
	ref := fpdutest.Stream{Markers: p.RecvMarkers, CRC: p.CRC}
	for i, n := range lengths {
		u := pattern(n, i)
		ulpdus = append(ulpdus, u)
		wire = append(wire, ref.Send(u)...)
		ends = append(ends, len(wire))
	}
	return ulpdus, wire, ends
}
