// This file is the shared receive queue after its creation: Modify, Destroy and Fail
// (Verbs §6.3.2, §6.3.3, §6.3.6).

package verbs

// An SRQModify says what to change; what is nil or false stays as it is.
type SRQModify struct {
	WRs   *int // receives outstanding at a time
	Limit *int // the S-RQ Limit; 0 disarms it
	Arm   bool // arm the S-RQ Limit, armed or not
}

// Modify changes the shared receive queue, while messages arrive, too, and
// returns what it is then (Verbs §9.2.4.3, §6.3.2). It does all of m or nothing.
// The results besides success are ErrRNIC, ErrSRQ, ErrWRMax, ErrSRQLimit,
// ErrShrink for fewer receives than are outstanding, ErrResources, and
// ErrModifier for fewer than a limit that is armed.
//
// EventSRQLimit is considered when a message wants a receive. To arm a limit
// that is passed already does not raise it; the next message does.
func (s *SRQ) Modify(m SRQModify) (SRQAttributes, error) {
	const verb = "modify S-RQ"
	r := s.pd.rnic
	s.modify.Lock()
	defer s.modify.Unlock()
	s.mu.Lock()
	next, err := s.modified(verb, m)
	more := next.wrs - s.wrs
	s.mu.Unlock()
	if err != nil {
		return SRQAttributes{}, err
	}
	wqes := newRecvWQEs(max(more, 0), s.sges) // before the locks: it may take a while
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.reserveSRQWRs(verb, more); err != nil {
		return SRQAttributes{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if next, err = s.modified(verb, m); err != nil { // messages and posters went on
		_ = r.reserveSRQWRs(verb, -more) // giving back never fails
		return SRQAttributes{}, err
	}
	s.grow(wqes)
	for ; s.wrs > next.wrs; s.wrs-- {
		s.spare.pop()
	}
	s.limit, s.armed = next.limit, next.armed
	return s.attributes(), nil
}

// An srqSize is what Modify can change.
type srqSize struct {
	wrs, limit int
	armed      bool
}

// modified is what m leads to; needs mu.
func (s *SRQ) modified(verb string, m SRQModify) (srqSize, error) {
	next := srqSize{s.wrs, s.limit, s.armed || m.Arm}
	if err := s.check(verb); err != nil {
		return next, err
	}
	if m.WRs != nil {
		next.wrs = *m.WRs
		if err := s.pd.rnic.checkSRQWRs(verb, next.wrs); err != nil {
			return next, err
		}
	}
	if m.Limit != nil {
		next.limit = *m.Limit
	}
	next.armed = next.armed && next.limit > 0
	outstanding := s.wrs - s.spare.n
	switch {
	case next.limit < 0 || next.limit > next.wrs && (m.Limit != nil || m.Arm):
		return next, fail(verb, ErrSRQLimit, "%d, expected 0 to %d, the number of work requests", next.limit, next.wrs)
	case next.limit > next.wrs && next.armed:
		return next, fail(verb, ErrModifier, "%d work requests are fewer than the S-RQ Limit of %d, which is armed", next.wrs, next.limit)
	case m.Arm && next.limit == 0:
		return next, fail(verb, ErrModifier, "nothing is below an S-RQ Limit of 0")
	case next.wrs < outstanding:
		return next, fail(verb, ErrShrink, "to %d, %d are outstanding", next.wrs, outstanding)
	}
	return next, nil
}

// Destroy destroys the shared receive queue. It fails with ErrSRQInUse while a
// queue pair uses it (Verbs §6.3.3); other results are ErrRNIC and ErrSRQ.
// Receives that no message has taken never complete: their memory is the
// caller's again when Destroy returns.
func (s *SRQ) Destroy() error {
	const verb = "destroy S-RQ"
	r := s.pd.rnic
	s.modify.Lock()
	defer s.modify.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.alive(verb); err != nil {
		return err
	}
	switch {
	case s.dead:
		return r.gone(verb, ErrSRQ)
	case s.qps > 0:
		return fail(verb, ErrSRQInUse, "%d of them: destroy them first", s.qps)
	}
	_ = r.reserveSRQWRs(verb, -s.wrs) // giving back never fails
	s.end()
	delete(r.srqs, s)
	s.pd.srqs--
	return nil
}

// end ends the queue; needs mu.
func (s *SRQ) end() {
	s.dead = true
	s.posted, s.spare = wqeList{}, wqeList{}
}

// Fail makes the queue fail as hardware does, for tests of how a program handles it:
// EventSRQCatastrophic is raised, and the stream of a queue pair that needs a receive
// for a message afterwards is ended with a Terminate message and EventSRQError (Verbs
// §6.3.6). Messages that have a receive already are not disturbed. All that can be done
// with the queue then is to destroy it: other verbs fail with ErrSRQ. The results
// besides success are ErrRNIC and ErrSRQ.
func (s *SRQ) Fail() error {
	s.mu.Lock()
	if err := s.check("fail S-RQ"); err != nil {
		s.mu.Unlock()
		return err
	}
	s.failed = true
	for e := s.waiting.Front(); e != nil; e = e.Next() {
		e.Value.(*recvQueue).wake()
	}
	s.mu.Unlock()
	s.pd.rnic.raise(Event{ID: EventSRQCatastrophic, SRQ: s})
	return nil
}
