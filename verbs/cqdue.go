// This file counts the completions that a CQ may have to hold, and logs a warning if they
// are more than its entries (Verbs §5.3: the consumer prevents overflow).

package verbs

// expected is what a CQ may have to hold; CQ.mu.
type expected struct {
	due    int          // work requests that may be outstanding in the queues attached
	shared map[*SRQ]due // the part of them that S-RQs account for
	small  bool         // they are more than the entries, and the warning was logged
}

// due is the part of one S-RQ. It counts once, however many queue pairs use both.
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

// share counts a queue pair, or with sign -1 uncounts it, whose receives of s complete into
// cq, and returns the change of the number of work requests.
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

// expect counts n more work requests that may complete into cq, or fewer if n is negative,
// and logs a warning when they become more than its entries.
func (cq *CQ) expect(n int) {
	cq.mu.Lock()
	e, entries := &cq.expected, cq.entries
	e.due += n
	was := e.small
	e.small = e.due > entries
	warn, due := e.small && !was, e.due
	cq.mu.Unlock()
	if warn {
		cq.rnic.log.Warn("completions may be lost: a CQ has fewer entries than the queues that complete into it have work requests",
			"entries", entries, "workRequests", due)
	}
}
