// The checks of a mixture: completions, invalidations and memory.

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"

	"github.com/weft-rdma/weft/verbs"
)

// checkAnswer checks what an operation has brought, as soon as it has completed.
func (p *party) checkAnswer(wc *verbs.WC) {
	r := &p.requests[wc.ID]
	if wc.Status != verbs.Success {
		return
	}
	switch r.Op {
	case verbs.OpRead, verbs.OpReadInvalidate, verbs.OpFetchAdd:
		e := &r.SGL[0]
		if got, want := p.buf[e.TO:][:e.Length], p.want[e.TO:][:e.Length]; !bytes.Equal(got, want) {
			p.t.Errorf("%s: %v %d has brought % x, expected % x", p.m.name, r.Op, wc.ID, got, want)
		}
	}
	if r.gone != nil && r.gone.Valid() {
		p.t.Errorf("%s: %v %d did not invalidate", p.m.name, r.Op, wc.ID)
	}
}

// checkArrival checks receive number i as soon as it has completed.
func (p *party) checkArrival(wc *verbs.WC, i int) {
	if i >= p.whole {
		return
	}
	a := &p.arrivals[i]
	got, want := fmt.Sprint(wc.ID, wc.Op, wc.Status, wc.Solicited, wc.Bytes, wc.Immediate, wc.HasInvalidated, wc.Invalidated),
		fmt.Sprint(a.want.ID, a.want.Op, a.want.Status, a.want.Solicited, a.want.Bytes, a.want.Immediate, a.want.HasInvalidated, a.want.Invalidated)
	if got != want || wc.QP != p.qp {
		p.t.Errorf("%s: arrival %d is %v, expected %v", p.m.name, i, got, want)
	}
	for _, e := range a.SGL {
		if !bytes.Equal(p.buf[e.TO:][:e.Length], p.want[e.TO:][:e.Length]) {
			p.t.Errorf("%s: arrival %d has other octets", p.m.name, i)
		}
	}
	if a.gone != nil && a.gone.Valid() {
		p.t.Errorf("%s: arrival %d did not invalidate", p.m.name, i)
	}
}

// settle waits for the end of a stream that a request has failed on, and takes what is left.
func (p *party) settle() {
	if p.bad < 0 && p.peer.bad < 0 {
		return
	}
	reach(p.t, p.qp, verbs.Error)
	for p.qp.State() == verbs.Error && p.qp.Reset() != nil {
		runtime.Gosched() // until it is flushed
	}
	for _, q := range []struct {
		cq   *verbs.CQ
		into *[]verbs.WC
	}{{p.sendCQ, &p.sent}, {p.recvCQ, &p.received}} {
		var wc [1]verbs.WC
		for q.cq.Poll(wc[:]) > 0 {
			*q.into = append(*q.into, wc[0])
		}
	}
}

// checkSent checks which requests have completed, and how.
func (p *party) checkSent() {
	p.settle()
	next, failed := 0, false
	for _, wc := range p.sent {
		id := int(wc.ID)
		r := &p.requests[id]
		for ; next < id; next++ {
			if p.requests[next].Flags&verbs.Signaled != 0 {
				p.t.Errorf("%s: no completion of %d", p.m.name, next)
			}
		}
		expected := verbs.Success
		switch {
		case id < next:
			p.t.Errorf("%s: request %d completes late, or again", p.m.name, id)
		case wc.Op != r.Op:
			p.t.Errorf("%s: request %d is %v, expected %v", p.m.name, id, wc.Op, r.Op)
		case p.bad < 0:
		case id == p.bad:
			if expected = wc.Status; wc.Status == verbs.Success && !p.mayComplete(id) || wc.Status == verbs.Flushed && !p.mayComplete(id) {
				p.t.Errorf("%s: request %d, %v, completes with %v, though it fails", p.m.name, id, r.Op, wc.Status)
			}
		case !failed && (id < p.bad || p.mayComplete(id)): // the peer refuses before it answers
			if expected = wc.Status; wc.Status != verbs.Success && wc.Status != verbs.Flushed {
				p.t.Errorf("%s: request %d, %v, has failed with %v", p.m.name, id, r.Op, wc.Status)
			}
		default:
			expected = verbs.Flushed
		}
		if wc.Status != expected {
			p.t.Errorf("%s: request %d, %v: %v, expected %v", p.m.name, id, r.Op, wc.Status, expected)
		}
		if wc.Status == verbs.Success && r.Flags&verbs.Signaled == 0 {
			p.t.Errorf("%s: a completion of %d, which is unsignaled", p.m.name, id)
		}
		failed = failed || wc.Status != verbs.Success
		next = id + 1
	}
	for ; next < p.posted; next++ {
		if p.requests[next].Flags&verbs.Signaled != 0 {
			p.t.Errorf("%s: no completion of %d, of %d", p.m.name, next, p.posted)
		}
	}
}

// mayComplete reports that a request may be done when the end of the stream comes: the peer has it, and
// nobody waits for its answer.
func (p *party) mayComplete(id int) bool { return p.far && !p.needsAnswer(id) }

func (p *party) needsAnswer(id int) bool {
	switch p.requests[id].Op {
	case verbs.OpRead, verbs.OpReadInvalidate, verbs.OpFetchAdd:
		return true
	}
	return false
}

// checkReceived checks that all that was to arrive has, and nothing else.
func (p *party) checkReceived() {
	p.settle()
	for i, wc := range p.received {
		if wc.ID != uint64(i) || i < p.whole && wc.Status != verbs.Success || i >= p.whole && wc.Status == verbs.Success {
			p.t.Errorf("%s: receive %d: %d, %v", p.m.name, i, wc.ID, wc.Status)
		}
	}
	if len(p.received) < p.whole || p.srq == nil && len(p.received) != p.ready {
		p.t.Errorf("%s: %d receives completed of %d that were posted, %d messages arrive", p.m.name, len(p.received), p.ready, p.whole)
	}
}

// checkMemory compares all memory with what it is to be.
func (p *party) checkMemory() {
	if p.peer.bad >= 0 { // atomics that have not been answered may have been executed
		for k, values := range p.words {
			at := wordsOff + 8*k
			last := slices.Index(values, binary.NativeEndian.Uint64(p.want[at:]))
			if got := binary.NativeEndian.Uint64(p.buf[at:]); slices.Index(values[:last+1], got) < 0 {
				p.t.Errorf("%s: word %d is %#x, expected one of %#x", p.m.name, k, got, values[:last+1])
			}
			copy(p.want[at:at+8], p.buf[at:])
		}
	}
	for i := range p.buf {
		if p.buf[i] != p.want[i] {
			p.t.Fatalf("%s: octet %#x is %#x, expected %#x", p.m.name, i, p.buf[i], p.want[i])
		}
	}
}
