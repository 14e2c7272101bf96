// This file is the failure of a queue pair, which happens on request only.

package verbs

import "github.com/weft-rdma/weft/rdmap"

// Fail makes the queue pair fail as hardware does, for tests of how a program handles
// it: EventQPCatastrophic is raised, and the queue pair goes to Error. A stream is ended
// with a Terminate message 0/2/07 (Verbs figure 24). If a work request of the send queue
// is outstanding in Idle or RTS, the oldest one completes with LocalCatastrophic when
// the stream, if there is one, has ended. The results besides success are ErrRNIC and
// ErrQP.
func (q *QP) Fail() error {
	const verb = "fail QP"
	if err := q.rnic.alive(verb); err != nil {
		return err
	}
	q.mu.Lock()
	if q.dead {
		q.mu.Unlock()
		return q.rnic.gone(verb, ErrQP)
	}
	if q.state == RTS || q.state == Idle { // in others the fault is another's
		q.sq.condemn()
	}
	var after func()
	if c := q.conn.Load(); c != nil && q.state == RTS {
		c.terminate(protocolError, errQPFailed, EventQPCatastrophic)
		after = c.stream.Kick
	} else {
		idle := q.state == Idle
		after = q.abort()
		if idle {
			q.err = errQPFailed
		}
		q.rnic.raise(Event{ID: EventQPCatastrophic, QP: q, Err: errQPFailed})
	}
	q.mu.Unlock()
	if after != nil {
		after()
	}
	return nil
}

var errQPFailed = rdmap.NewError(rdmap.RemoteOperation, rdmap.CodeStream, "the queue pair failed")

// condemn makes the oldest request that is outstanding, if there is one and none has
// failed before it, complete with LocalCatastrophic: when RDMAP is done with it, or
// with the stream, as its memory and its slot are in use until then.
func (s *sendQueue) condemn() {
	s.done.Lock()
	defer s.done.Unlock()
	if s.head != s.tail.Load() && !s.failed {
		s.at(s.head).status = LocalCatastrophic
	}
}
