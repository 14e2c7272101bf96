// This file holds the Sends of a requester.

package rpcrdma

import "github.com/weft-rdma/weft/verbs"

// A sending is the Send of a message, and its memory. It outlives a call that
// ends before it has been sent.
type sending struct {
	work
	r   *requester
	buf *buffer
	wr  [1]verbs.SendWR
	sgl [1]verbs.SGE
}

// sending returns a sending with memory for a message.
func (r *requester) sending() (*sending, error) {
	r.mu.Lock()
	if n := len(r.free); n > 0 {
		s := r.free[n-1]
		r.free = r.free[:n-1]
		r.mu.Unlock()
		return s, nil
	}
	r.mu.Unlock()
	return newSending(r)
}

func newSending(r *requester) (*sending, error) {
	s := &sending{r: r}
	var err error
	if s.buf, err = r.e.pool.get(int(r.e.cfg.private.SendSize)); err != nil {
		return nil, err
	}
	s.done = s.sent
	return s, nil
}

// post sends n octets. If the connection has ended, the requester learns it from the
// end of the connection.
func (s *sending) post(n int) {
	s.sgl[0] = s.buf.mr.SGE(0, n)
	s.wr[0] = verbs.SendWR{Op: verbs.OpSend, SGL: s.sgl[:]}
	s.wrs = s.wr[:]
	if s.r.e.queue.send(&s.work) != nil {
		s.discard()
	}
}

// sent keeps the sending for reuse.
func (s *sending) sent(*work, error) {
	r := s.r
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.dead != nil {
		s.discard()
		return
	}
	r.free = append(r.free, s)
}

// discard frees the memory.
func (s *sending) discard() { s.r.e.pool.put(s.buf) }
