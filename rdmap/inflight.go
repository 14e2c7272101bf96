package rdmap

import (
	"sync"

	"github.com/weft-rdma/weft/ddp"
)

// A leaving is a segment, or the end of a message, on its way to the transport.
type leaving struct {
	frame  uint64 // the count of segments appended when it had been appended
	ticket uint64
	kind   messageKind
	last   bool
}

// A dropped is one that will not leave.
type dropped struct {
	leaving
	answer request // if kind is kindAnswer: what is answered, sent before this segment
}

// fault is the error of an answer whose source was found to be unusable after this
// segment had been gathered.
func (d *dropped) fault(f ddp.Fault) error {
	return services[d.answer.opcode].refused(&d.answer, f)
}

// An inflight is what has been appended but not written, in order: one entry a
// run of segments of one message is enough to say which messages are complete
// and which one a segment belongs to.
type inflight struct {
	*ledger
	terminated bool // the Terminate message has been appended: nothing follows
}

// A ledger is the memory of an inflight that is not empty. It comes from the pool
// and goes back there.
type ledger struct {
	segments deque[leaving]
	answers  deque[request] // of the segments that are kindAnswer, one each
}

var ledgers = sync.Pool{New: func() any { return new(ledger) }}

// len is the number of entries.
func (q *inflight) len() int {
	if q.ledger == nil {
		return 0
	}
	return q.segments.n
}

// push notes the segment of m that made frame segments in all.
func (q *inflight) push(frame uint64, m *message, last bool) {
	if q.ledger == nil {
		q.ledger = ledgers.Get().(*ledger)
	}
	*q.segments.pushBack() = leaving{frame, m.ticket, m.kind, last}
	switch m.kind {
	case kindAnswer:
		*q.answers.pushBack() = m.req
	case kindTerminate:
		q.terminated = true
	}
}

// written drops the segments that are among the first frames written, and
// returns the ticket of the last operation that is thereby complete.
func (q *inflight) written(frames uint64) (ticket uint64, any bool) {
	if q.ledger == nil {
		return 0, false
	}
	for q.segments.n > 0 {
		e := q.segments.at(0)
		if e.frame > frames {
			return ticket, any
		}
		switch {
		case e.kind == kindAnswer:
			q.answers.popFront()
		case e.last && e.kind == kindOperation:
			ticket, any = e.ticket, true
		}
		q.segments.popFront()
	}
	q.settle()
	return ticket, any
}

// truncate drops segment number frame, counted from 0, and all after it, and
// returns the one dropped first.
func (q *inflight) truncate(frame uint64) (first dropped, ok bool) {
	for q.len() > 0 {
		e := q.segments.at(q.segments.n - 1)
		if e.frame <= frame {
			return first, ok
		}
		first, ok = dropped{leaving: *e}, true
		switch e.kind {
		case kindAnswer:
			first.answer = *q.answers.at(q.answers.n - 1)
			q.answers.popBack()
		case kindTerminate:
			q.terminated = false
		}
		q.segments.popBack()
	}
	q.settle()
	return first, ok
}

// settle gives the memory back when nothing is under way.
func (q *inflight) settle() {
	if q.ledger != nil {
		ledgers.Put(q.ledger)
		q.ledger = nil
	}
}
