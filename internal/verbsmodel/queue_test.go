package verbsmodel_test

import (
	"slices"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// The model of queue pairs and their queues.

// A queuePair of the model.
type queuePair struct {
	w     *world
	host  *host
	pd    int
	cfg   verbs.QPConfig
	qp    *verbs.QP
	state verbs.State
	peer  *queuePair // in RTS

	// fenced: the peer has to send first (RFC 5044 §7.1.2).
	fenced bool
	ord    int
	sends  []*slot         // each holds a place of the send queue, oldest first
	recvs  []*slot         // the same of the receive queue; with an S-RQ those taken
	events []verbs.EventID // expected of the step
	came   []verbs.EventID
}

// A sharedQueue is an S-RQ of the model.
type sharedQueue struct {
	host  *host
	pd    int
	srq   *verbs.SRQ
	depth int
	slots []*slot // each holds a place, in the order of posting
}

// A slot is a work request from its posting until its place is free again.
type slot struct {
	send verbs.SendWR // of a send queue
	id   uint64
	sgl  []verbs.SGE
	recv bool
	took *queuePair // whose message took this receive of an S-RQ

	done    bool
	visible bool // has a completion
	polled  bool
	want    []verbs.Status // any of them
	op      verbs.Op
	bytes   uint32
	inv     *memory.STag
	imm     [8]byte
	se      bool
}

// length of the scatter/gather list.
func (s *slot) length() (n uint64) {
	for _, e := range s.sgl {
		n += uint64(e.Length)
	}
	return n
}

// finish completes a request of the send queue.
func (s *slot) finish(want ...verbs.Status) {
	s.done, s.want = true, want
	s.visible = s.send.Flags&verbs.Signaled != 0 || want[0] != verbs.Success
}

// trim frees the places at the front: requests that are done and whose
// completion, if they have one, was polled (Verbs §8.2.1).
func trim(slots []*slot) []*slot {
	for len(slots) > 0 && slots[0].done && (slots[0].polled || !slots[0].visible) {
		slots = slots[1:]
	}
	return slots
}

// waiting is the oldest request of the send queue that has not been executed.
func (q *queuePair) waiting() *slot {
	for _, s := range q.sends {
		if !s.done {
			return s
		}
	}
	return nil
}

// receive takes the oldest receive that the queue pair can have.
func (q *queuePair) receive() *slot {
	if h := q.host; q.cfg.SRQ != nil {
		for _, s := range h.srq.slots {
			if s.took == nil {
				s.took = q
				q.recvs = append(q.recvs, s)
				return s
			}
		}
		return nil
	}
	for _, s := range q.recvs {
		if !s.done {
			return s
		}
	}
	return nil
}

// ready counts the receives that messages to the queue pair can have.
func (q *queuePair) ready() (n int) {
	if q.cfg.SRQ != nil {
		for _, s := range q.host.srq.slots {
			if s.took == nil {
				n++
			}
		}
		return n
	}
	for _, s := range q.recvs {
		if !s.done {
			n++
		}
	}
	return n
}

// held counts the requests that wait for the stream, or for the peer.
func (q *queuePair) held() (n int) {
	for _, s := range q.sends {
		if !s.done {
			n++
		}
	}
	return n
}

// clear reports that what waits in q can be sent as soon as the peer's first
// message is there, with an outcome that does not depend on when the peer learns
// that it was refused.
func (q *queuePair) clear(peer *queuePair) bool { return q.held() <= max(1, peer.ready()) }

// finishRecv completes a receive.
func (s *slot) finishRecv(op verbs.Op, status verbs.Status) {
	s.done, s.visible, s.op, s.want = true, true, op, []verbs.Status{status}
}

// flush completes everything as Flushed (Verbs §6.2.4): receives only, if
// closed is true.
func (q *queuePair) flush(closed bool) {
	for _, s := range q.sends {
		if !s.done && !closed {
			s.finish(verbs.Flushed)
		}
	}
	for _, s := range q.recvs {
		if !s.done {
			s.finishRecv(verbs.OpRecv, verbs.Flushed)
		}
	}
	q.sends = trim(q.sends)
}

// run executes what is waiting in the send queue, as far as it goes.
func (q *queuePair) run() {
	for q.state == verbs.RTS && !q.fenced {
		s := q.waiting()
		if s == nil {
			break
		}
		q.execute(s)
	}
	q.sends = trim(q.sends)
}

// fail ends a stream: event is q's own, the other end's is that of a
// Terminate message.
func (q *queuePair) fail(event verbs.EventID) {
	if event != 0 {
		q.events = append(q.events, event)
	}
	p := q.peer
	p.events = append(p.events, verbs.EventTerminateReceived)
	for _, e := range [...]*queuePair{q, p} {
		e.enter(verbs.Error)
	}
}

// enter ends the stream of a queue pair.
func (q *queuePair) enter(state verbs.State) {
	q.state = state
	q.flush(state == verbs.Idle)
	q.peer = nil
}

// polled matches a completion with the model.
func (w *world) polled(wc *verbs.WC) {
	i := slices.IndexFunc(w.qps, func(q *queuePair) bool { return q.qp == wc.QP })
	if i < 0 {
		return // of a queue pair that has been destroyed
	}
	q := w.qps[i]
	queue := q.sends
	if wc.Op == verbs.OpRecv || wc.Op == verbs.OpRecvImmediate {
		queue = q.recvs
	}
	at := slices.IndexFunc(queue, func(s *slot) bool { return s.visible && !s.polled })
	if at < 0 {
		w.fail("a completion that nothing promised: %v of %v %d, %v", wc.Status, wc.Op, wc.ID, q)
	}
	s := queue[at]
	s.polled = true
	op := s.send.Op
	if s.op != 0 {
		op = s.op
	}
	switch {
	case wc.ID != s.id, wc.Op != op, !slices.Contains(s.want, wc.Status):
		w.fail("%v: a completion is %v %d: %v, expected %v %d: %v", q, wc.Op, wc.ID, wc.Status, op, s.id, s.want)
	case wc.Status == verbs.Success && s.op != 0:
		if wc.Bytes != s.bytes || wc.HasInvalidated != (s.inv != nil) || wc.Solicited != s.se || wc.Immediate != s.imm ||
			s.inv != nil && wc.Invalidated != *s.inv {
			w.fail("%v: a receive is %+v, expected %+v", q, *wc, *s)
		}
	}
	if s.op != 0 {
		if q.cfg.SRQ != nil {
			q.host.srq.slots = slices.DeleteFunc(q.host.srq.slots, func(o *slot) bool { return o == s })
			q.recvs = slices.DeleteFunc(q.recvs, func(o *slot) bool { return o == s })
			return
		}
		q.recvs = trim(q.recvs)
		return
	}
	// A completion frees the places of all requests before it, too.
	q.sends = trim(q.sends)
}
