// This file counts the completions that a CQ may have to hold, and warns if those are
// more than it has entries (Verbs §5.3: the consumer prevents overflow).

package verbs

// expected is what a CQ may have to hold; CQ.mu.
type expected struct {
	due    int          // work requests that may be outstanding in the queues attached
	shared map[*SRQ]due // of which those of S-RQs
	small  bool         // it is more than there are entries, which was said
}

// due is the part of an S-RQ's in a CQ, however many queue pairs use both.
type due struct{ qps, wrs int }

// expect counts what may complete into the queue pair's CQs; sign is -1 when it is
// being destroyed.
func (q *QP) expect(sign int) {
	q.sq.post.Lock()
	send := sign * int(q.sq.depth)
	q.sq.post.Unlock()
	q.rq.post.Lock()
	recv := sign * int(q.rq.depth)
	q.rq.post.Unlock()
	if srq := q.cfg.SRQ; srq != nil {
		recv = q.cfg.RecvCQ.share(srq, sign)
	}
	if q.cfg.SendCQ == q.cfg.RecvCQ {
		send, recv = send+recv, 0
	}
	q.cfg.SendCQ.expect(send)
	q.cfg.RecvCQ.expect(recv)
}

// share notes that one queue pair more, or less, has the receives of s complete into
// cq, and returns how many work requests more that is.
func (cq *CQ) share(s *SRQ, sign int) int {
	s.mu.Lock()
	wrs := s.wrs
	s.mu.Unlock()
	cq.mu.Lock()
	defer cq.mu.Unlock()
	d := cq.expected.shared[s]
	switch d.qps += sign; {
	case d.qps == 0:
		delete(cq.expected.shared, s)
		return -d.wrs
	case d.qps == 1 && sign > 0:
		cq.expected.shared[s] = due{1, wrs}
		return wrs
	}
	cq.expected.shared[s] = d
	return 0
}

// expect notes that n work requests more may complete into cq, or fewer if n is
// negative, and says so if they are more than it has entries.
func (cq *CQ) expect(n int) {
	cq.mu.Lock()
	e, entries := &cq.expected, cq.entries
	e.due += n
	was := e.small
	e.small = e.due > entries
	news, due := e.small && !was, e.due
	cq.mu.Unlock()
	if news {
		cq.rnic.log.Warn("completions may be lost: a CQ has fewer entries than the queues that complete into it have work requests",
			"entries", entries, "workRequests", due)
	}
}
