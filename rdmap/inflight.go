// This file accounts for segments that were appended and have not been written.

package rdmap

import (
	"sync"

	"github.com/weft-rdma/weft/ddp"
)

// An appendedRun is segments that were appended one behind the other and not all written: of
// one message, or of operations of one segment each, whose tickets follow each other.
type appendedRun struct {
	frame  uint64 // number of the first segment
	ticket uint64 // of the first message
	n      int32  // how many segments there are
	size   int32  // octets of payload of each but the last, of one message
	kind   messageKind
	last   bool // the last of the message is among them
	whole  bool // each is an operation
}

func (r *appendedRun) end() uint64 { return r.frame + uint64(r.n) }

// takes adds n operations of one segment each, from number frame on, if the run is of such
// operations, too, and their segments and tickets follow each other.
func (r *appendedRun) takes(frame, ticket uint64, n int) bool {
	if r.n > 1 && !r.whole || r.kind != kindOperation || frame != r.end() || ticket != r.ticket+uint64(r.n) {
		return false
	}
	r.n += int32(n)
	r.whole = true
	return true
}

// A truncated is a segment that will not be written.
type truncated struct {
	ticket uint64
	kind   messageKind
	answer request // if kind is kindAnswer: what is answered, sent before this segment
}

// fault is the error of an answer whose source was found to be unusable after this
// segment had been gathered.
func (d *truncated) fault(f ddp.Fault) error {
	return services[d.answer.opcode].refused(&d.answer, f)
}

// An inflight is what has been appended but not written, in order. It leaves out runs of Read
// Requests and of answers, which complete nothing by leaving and refer to no memory of the ULP.
type inflight struct {
	*inflightBuf
	terminated bool // the Terminate message has been appended: nothing follows
}

// An inflightBuf is the memory of an inflight that is not empty. It comes from the pool
// and goes back there.
type inflightBuf struct {
	runs    deque[appendedRun]
	answers deque[request] // of the runs that are kindAnswer, one each: sent before the run
}

var inflightBufs = sync.Pool{New: func() any { return new(inflightBuf) }}

// len is the number of entries.
func (q *inflight) len() int {
	if q.inflightBuf == nil {
		return 0
	}
	return q.runs.n
}

// push notes n segments of m, from number frame on, each but the last of size octets of payload.
func (q *inflight) push(frame uint64, n, size int, m *message, last bool) {
	if n == 1 && last && m.kind == kindOperation {
		q.pushOperations(frame, m.ticket, 1)
		return
	}
	q.get()
	r := q.runs.pushBack() // field by field: a literal would be made apart and copied
	r.frame, r.ticket, r.n, r.size = frame, m.ticket, int32(n), int32(size)
	r.kind, r.last, r.whole = m.kind, last, false
	switch m.kind {
	case kindAnswer:
		*q.answers.pushBack() = m.req
	case kindTerminate:
		q.terminated = true
	}
}

// pushOperations notes n operations of one segment each, from number frame on, with tickets from
// ticket on.
func (q *inflight) pushOperations(frame, ticket uint64, n int) {
	q.get()
	if q.runs.n > 0 && q.runs.at(q.runs.n-1).takes(frame, ticket, n) {
		return
	}
	r := q.runs.pushBack()
	r.frame, r.ticket, r.n, r.size = frame, ticket, int32(n), 0
	r.kind, r.last, r.whole = kindOperation, true, n > 1
}

// get takes memory from the pool, unless it has some.
func (q *inflight) get() {
	if q.inflightBuf == nil {
		q.inflightBuf = inflightBufs.Get().(*inflightBuf)
	}
}

// written drops the segments that are among the first frames written, and returns the
// ticket of the last operation that this completes.
func (q *inflight) written(frames uint64) (ticket uint64, any bool) {
	if q.inflightBuf == nil {
		return 0, false
	}
	for q.runs.n > 0 {
		r := q.runs.at(0)
		if r.end() > frames {
			if r.whole && r.frame < frames {
				n := frames - r.frame
				r.frame, r.ticket, r.n = frames, r.ticket+n, r.n-int32(n)
				return r.ticket - 1, true
			}
			return ticket, any
		}
		switch {
		case r.kind == kindAnswer:
			q.answers.popFront()
		case r.whole:
			ticket, any = r.ticket+uint64(r.n)-1, true
		case r.last && r.kind == kindOperation:
			ticket, any = r.ticket, true
		}
		q.runs.popFront()
	}
	q.release()
	return ticket, any
}

// truncate drops segment number frame, counted from 0, and all after it, and
// returns the one truncated first.
func (q *inflight) truncate(frame uint64) (first truncated, ok bool) {
	for q.len() > 0 {
		r := q.runs.at(q.runs.n - 1)
		if r.end() <= frame {
			return first, ok
		}
		kept := max(frame, r.frame) - r.frame
		first, ok = truncated{ticket: r.ticket, kind: r.kind}, true
		switch r.kind {
		case kindAnswer:
			first.answer = *q.answers.at(q.answers.n - 1)
			first.answer.sent += uint32(kept) * uint32(r.size)
		case kindTerminate:
			q.terminated = false
		}
		if r.whole {
			first.ticket += kept
		}
		if kept > 0 {
			r.n, r.last = int32(kept), false
			return first, ok
		}
		if r.kind == kindAnswer {
			q.answers.popBack()
		}
		q.runs.popBack()
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
