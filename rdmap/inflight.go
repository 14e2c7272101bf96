package rdmap

import "github.com/weft-rdma/weft/ddp"

// A leaving is a segment, or the end of a message, on its way to the transport.
type leaving struct {
	frame  uint64 // the count of segments appended when it had been appended
	ticket uint64
	kind   messageKind
	last   bool
	answer request // if kind is kindAnswer: what is answered, sent before this segment
}

// fault is the error of an answer whose source was revoked after this segment
// had been gathered.
func (l *leaving) fault() error {
	if l.answer.atomic {
		return l.answer.atomicFault(true, ddp.FaultSTag)
	}
	return l.answer.readFault(ddp.FaultSTag, l.answer.sent)
}

// An inflight is what has been appended but not written, in order: one entry a
// run of segments of one message is enough to say which messages are complete
// and which one a segment belongs to.
type inflight struct {
	ring       []leaving
	head, n    int
	terminated bool // the Terminate message has been appended: nothing follows
}

func (q *inflight) init() { q.ring = make([]leaving, 64) }

func (q *inflight) at(i int) *leaving { return &q.ring[(q.head+i)&(len(q.ring)-1)] }

// push notes the segment of m that made frame segments in all.
func (q *inflight) push(frame uint64, m *message, last bool) {
	if q.n == len(q.ring) {
		q.grow()
	}
	e := q.at(q.n)
	q.n++
	e.frame, e.ticket, e.kind, e.last = frame, m.ticket, m.kind, last
	if m.kind == kindAnswer {
		e.answer = m.req
	}
	if m.kind == kindTerminate {
		q.terminated = true
	}
}

func (q *inflight) grow() {
	ring := make([]leaving, 2*len(q.ring))
	for i := range q.n {
		ring[i] = *q.at(i)
	}
	q.ring, q.head = ring, 0
}

// written drops the segments that are among the first frames written, and
// returns the ticket of the last operation that is thereby complete.
func (q *inflight) written(frames uint64) (ticket uint64, any bool) {
	for q.n > 0 && q.at(0).frame <= frames {
		if e := q.at(0); e.last && e.kind == kindOperation {
			ticket, any = e.ticket, true
		}
		q.head = (q.head + 1) & (len(q.ring) - 1)
		q.n--
	}
	return ticket, any
}

// truncate drops segment number frame, counted from 0, and all after it, and
// returns the one dropped first.
func (q *inflight) truncate(frame uint64) (first leaving, ok bool) {
	for q.n > 0 && q.at(q.n-1).frame > frame {
		first, ok = *q.at(q.n - 1), true
		if first.kind == kindTerminate {
			q.terminated = false
		}
		q.n--
	}
	return first, ok
}
