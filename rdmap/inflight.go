// This file accounts for segments that were appended and have not been written.

package rdmap

import (
	"sync"

	"github.com/weft-rdma/weft/ddp"
)

// An appendedSegment is a segment that was appended and not written.
type appendedSegment struct {
	frame  uint64 // the count of segments appended when it had been appended
	ticket uint64
	kind   messageKind
	last   bool
}

// A truncated is a segment that will not be written.
type truncated struct {
	appendedSegment
	answer request // if kind is kindAnswer: what is answered, sent before this segment
}

// fault is the error of an answer whose source was found to be unusable after this
// segment had been gathered.
func (d *truncated) fault(f ddp.Fault) error {
	return services[d.answer.opcode].refused(&d.answer, f)
}

// An inflight is what has been appended but not written, in order: one entry a
// run of segments of one message is enough to say which messages are complete
// and which one a segment belongs to.
type inflight struct {
	*inflightBuf
	terminated bool // the Terminate message has been appended: nothing follows
}

// An inflightBuf is the memory of an inflight that is not empty. It comes from the pool
// and goes back there.
type inflightBuf struct {
	segments deque[appendedSegment]
	answers  deque[request] // of the segments that are kindAnswer, one each
}

var inflightBufs = sync.Pool{New: func() any { return new(inflightBuf) }}

// len is the number of entries.
func (q *inflight) len() int {
	if q.inflightBuf == nil {
		return 0
	}
	return q.segments.n
}

// push notes the segment of m that made frame segments in all.
func (q *inflight) push(frame uint64, m *message, last bool) {
	if q.inflightBuf == nil {
		q.inflightBuf = inflightBufs.Get().(*inflightBuf)
	}
	*q.segments.pushBack() = appendedSegment{frame, m.ticket, m.kind, last}
	switch m.kind {
	case kindAnswer:
		*q.answers.pushBack() = m.req
	case kindTerminate:
		q.terminated = true
	}
}

// written drops the segments that are among the first frames written, and returns the
// ticket of the last operation that this completes.
func (q *inflight) written(frames uint64) (ticket uint64, any bool) {
	if q.inflightBuf == nil {
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
	q.release()
	return ticket, any
}

// truncate drops segment number frame, counted from 0, and all after it, and
// returns the one truncated first.
func (q *inflight) truncate(frame uint64) (first truncated, ok bool) {
	for q.len() > 0 {
		e := q.segments.at(q.segments.n - 1)
		if e.frame <= frame {
			return first, ok
		}
		first, ok = truncated{appendedSegment: *e}, true
		switch e.kind {
		case kindAnswer:
			first.answer = *q.answers.at(q.answers.n - 1)
			q.answers.popBack()
		case kindTerminate:
			q.terminated = false
		}
		q.segments.popBack()
	}
	q.release()
	return first, ok
}

// release returns the memory to the pool.
func (q *inflight) release() {
	if q.inflightBuf != nil {
		inflightBufs.Put(q.inflightBuf)
		q.inflightBuf = nil
	}
}
