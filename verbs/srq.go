package verbs

import (
	"container/list"
	"sync"
)

// This file is the shared receive queue as its consumer sees it (Verbs §6.3,
// §9.2.4).

// An SRQConfig describes a shared receive queue to be created (Verbs §9.2.4.1).
type SRQConfig struct {
	WRs  int // receives outstanding at a time, at least 1
	SGEs int // elements of one scatter/gather list; 0 means 4

	// Limit, if above 0, arms the S-RQ Limit: EventSRQLimit tells once that
	// fewer than so many receives are posted and not used.
	Limit int
}

// An SRQ is a shared receive queue: the receives of many queue pairs
// (Verbs §6.3). A message takes one when its first octets arrive, in the order
// in which receives were posted and messages arrive (arrival order), whichever
// queue pair it is for. Each queue pair's messages complete in their order, on
// its own receive CQ.
//
// The memory of the receives belongs to the protection domain of the SRQ,
// whatever those of the queue pairs are; an STag to be invalidated by a message
// belongs to the queue pair's. What happens to one queue pair is nothing to the
// others, except that a peer can use up all receives: the limits of Verbs §6.3.8
// and the completions, which name their queue pair, tell of one that does.
//
// Methods may be called by any goroutine.
type SRQ struct {
	pd   *PD
	sges int

	mu      sync.Mutex
	ended   error     // why it can be used no more: ErrSRQ or ErrRNIC
	failed  bool      // Fail was called
	qps     int       // queue pairs that use it
	wrs     int       // receives outstanding at a time; those that are not are spare
	limit   int       // the S-RQ Limit
	armed   bool      // an event tells of fewer posted receives
	posted  wqeList   // not taken, oldest first
	spare   wqeList   // free
	waiting list.List // of *recvQueue: pause until a receive is posted
}

// SRQAttributes are what a shared receive queue is (Verbs §9.2.4.2).
type SRQAttributes struct {
	PD     *PD
	WRs    int  // receives outstanding at a time
	SGEs   int  // elements of one scatter/gather list
	Limit  int  // the S-RQ Limit
	Armed  bool // EventSRQLimit will tell of fewer posted receives than Limit
	Posted int  // receives that no message has taken
	Free   int  // receives that can be posted now
	QPs    int  // queue pairs that use it
}

// An SRQModify says what to change; what is nil or false stays as it is.
type SRQModify struct {
	WRs   *int // receives outstanding at a time
	Limit *int // the S-RQ Limit; 0 disarms it
	Arm   bool // arm the S-RQ Limit, armed or not
}

// CreateSRQ creates a shared receive queue whose receives name memory of pd.
// The results besides success are ErrRNIC, ErrPD, ErrModifier, ErrWRMax,
// ErrSGEMax, ErrSRQLimit and ErrResources.
func (pd *PD) CreateSRQ(cfg SRQConfig) (*SRQ, error) {
	const verb = "create S-RQ"
	r := pd.rnic
	l := &r.limits
	if cfg.SGEs == 0 {
		cfg.SGEs = 4
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := pd.check(verb); err != nil {
		return nil, err
	}
	switch {
	case cfg.WRs <= 0:
		return nil, fail(verb, ErrModifier, "%d work requests, at least 1 is expected", cfg.WRs)
	case cfg.SGEs < 0:
		return nil, fail(verb, ErrModifier, "%d elements, at least 1 is expected", cfg.SGEs)
	case cfg.WRs > l.SRQWRs:
		return nil, fail(verb, ErrWRMax, "%d were asked for, the limit is %d (Limits.SRQWRs)", cfg.WRs, l.SRQWRs)
	case cfg.SGEs > l.SGEs:
		return nil, fail(verb, ErrSGEMax, "%d were asked for, the limit is %d (Limits.SGEs)", cfg.SGEs, l.SGEs)
	case cfg.Limit < 0 || cfg.Limit > cfg.WRs:
		return nil, fail(verb, ErrSRQLimit, "%d, expected 0 to %d, the number of work requests", cfg.Limit, cfg.WRs)
	case len(r.srqs) >= l.SRQs:
		return nil, fail(verb, ErrResources, "the limit is %d shared receive queues (Limits.SRQs)", l.SRQs)
	}
	s := &SRQ{pd: pd, sges: cfg.SGEs, limit: cfg.Limit, armed: cfg.Limit > 0}
	s.grow(cfg.WRs)
	r.srqs[s] = struct{}{}
	pd.srqs++
	return s, nil
}

// grow makes room for n more receives; needs mu, if anyone knows of s.
func (s *SRQ) grow(n int) {
	wqes := newRecvWQEs(n, s.sges)
	for i := range wqes {
		s.spare.pushBack(&wqes[i])
	}
	s.wrs += n
}

// PD returns the protection domain of the memory that its receives name.
func (s *SRQ) PD() *PD { return s.pd }

// check says whether s can be used by verb; needs mu.
func (s *SRQ) check(verb string) error {
	switch s.ended {
	case nil:
		return nil
	case ErrRNIC:
		return fail(verb, ErrRNIC, "")
	}
	return fail(verb, ErrSRQ, "it has been destroyed")
}

// PostRecv posts one receive; see PostRecvs.
func (s *SRQ) PostRecv(wr RecvWR) error {
	_, err := s.PostRecvs([]RecvWR{wr})
	return err
}

// PostRecvs posts receives, in order. It stops at the first that cannot be
// posted and returns how many were, and why (PostRQ, Verbs §9.3.1.2). A receive
// is outstanding until its completion has been polled. The results besides
// success are ErrRNIC, ErrSRQ, ErrFull and ErrSGLLength.
func (s *SRQ) PostRecvs(wrs []RecvWR) (n int, err error) {
	s.mu.Lock()
	for n = range wrs {
		if err = s.push(&wrs[n]); err != nil {
			break
		}
	}
	if err == nil {
		n = len(wrs)
	}
	low := s.serve() && s.runLow()
	s.mu.Unlock()
	if low {
		s.tellLow()
	}
	return n, err
}

// push posts wr; needs mu.
func (s *SRQ) push(wr *RecvWR) error {
	const verb = "post to S-RQ"
	if err := s.check(verb); err != nil {
		return err
	}
	switch {
	case s.failed:
		return fail(verb, ErrSRQ, "it has failed: destroy it")
	case len(wr.SGL) > s.sges:
		return fail(verb, ErrSGLLength, "%d elements, the queue was created for %d (SRQConfig.SGEs)", len(wr.SGL), s.sges)
	case s.spare.n == 0:
		return fail(verb, ErrFull, "%d are outstanding; poll the completions of those that are done", s.wrs)
	}
	w := s.spare.pop()
	w.set(wr)
	s.posted.pushBack(w)
	return nil
}

// Query returns what the shared receive queue is (Verbs §9.2.4.2). The results
// besides success are ErrRNIC and ErrSRQ.
func (s *SRQ) Query() (SRQAttributes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check("query S-RQ"); err != nil {
		return SRQAttributes{}, err
	}
	return s.attributes(), nil
}

// attributes needs mu.
func (s *SRQ) attributes() SRQAttributes {
	return SRQAttributes{
		PD: s.pd, WRs: s.wrs, SGEs: s.sges, Limit: s.limit, Armed: s.armed,
		Posted: s.posted.n, Free: s.spare.n, QPs: s.qps,
	}
}

// Modify changes the shared receive queue, while messages arrive, too, and
// returns what it is then (Verbs §9.2.4.3, §6.3.2). It does all of m or nothing.
// The results besides success are ErrRNIC, ErrSRQ, ErrModifier, ErrWRMax,
// ErrSRQLimit, ErrShrink and ErrResources.
//
// EventSRQLimit is considered when a message wants a receive. To arm a limit
// that is passed already does not raise it; the next message does.
func (s *SRQ) Modify(m SRQModify) (SRQAttributes, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrs, limit, armed, err := s.checkModify(m)
	if err != nil {
		return SRQAttributes{}, err
	}
	if wrs > s.wrs {
		s.grow(wrs - s.wrs)
	}
	for ; s.wrs > wrs; s.wrs-- {
		s.spare.pop()
	}
	s.limit, s.armed = limit, armed
	return s.attributes(), nil
}

// checkModify returns what m leads to; needs mu.
func (s *SRQ) checkModify(m SRQModify) (wrs, limit int, armed bool, err error) {
	const verb = "modify S-RQ"
	if err := s.check(verb); err != nil {
		return 0, 0, false, err
	}
	wrs, limit = s.wrs, s.limit
	if m.WRs != nil {
		wrs = *m.WRs
	}
	if m.Limit != nil {
		limit = *m.Limit
	}
	armed = (s.armed || m.Arm) && limit > 0
	outstanding := s.wrs - s.spare.n
	max := s.pd.rnic.limits.SRQWRs
	switch {
	case s.failed:
		err = fail(verb, ErrSRQ, "it has failed: destroy it")
	case wrs <= 0:
		err = fail(verb, ErrModifier, "%d work requests, at least 1 is expected", wrs)
	case wrs > max:
		err = fail(verb, ErrWRMax, "%d were asked for, the limit is %d (Limits.SRQWRs)", wrs, max)
	case limit < 0 || limit > wrs && (m.Limit != nil || m.Arm):
		err = fail(verb, ErrSRQLimit, "%d, expected 0 to %d, the number of work requests", limit, wrs)
	case limit > wrs && armed:
		err = fail(verb, ErrModifier, "%d work requests are fewer than the S-RQ Limit of %d, which is armed", wrs, limit)
	case m.Arm && limit == 0:
		err = fail(verb, ErrModifier, "nothing is below an S-RQ Limit of 0")
	case wrs < outstanding:
		err = fail(verb, ErrShrink, "to %d, %d are outstanding", wrs, outstanding)
	}
	return wrs, limit, armed, err
}

// Destroy destroys the shared receive queue. It fails with ErrSRQInUse while a
// queue pair uses it (Verbs §6.3.3); other results are ErrRNIC and ErrSRQ.
// Receives that no message has taken never complete: their memory is the
// caller's again when Destroy returns.
func (s *SRQ) Destroy() error {
	const verb = "destroy S-RQ"
	r := s.pd.rnic
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(verb); err != nil {
		return err
	}
	if s.qps > 0 {
		return fail(verb, ErrSRQInUse, "%d of them: destroy them first", s.qps)
	}
	s.end(ErrSRQ)
	delete(r.srqs, s)
	s.pd.srqs--
	return nil
}

// end ends the queue; needs mu.
func (s *SRQ) end(result error) {
	s.ended = result
	s.posted, s.spare = wqeList{}, wqeList{}
}

// attach and detach count the queue pairs that use s.
func (s *SRQ) attach(verb string, limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(verb); err != nil {
		return err
	}
	if s.failed {
		return fail(verb, ErrSRQ, "it has failed: destroy it")
	}
	if err := s.checkRQLimit(verb, limit); err != nil {
		return err
	}
	s.qps++
	return nil
}

func (s *SRQ) detach() {
	s.mu.Lock()
	s.qps--
	s.mu.Unlock()
}

// Fail makes the queue fail for good, as a broken RNIC would: for tests of what
// a program does then (Verbs §6.3.6). EventSRQCatastrophic tells of it. A queue
// pair that a message arrives for afterwards is terminated, with EventSRQError;
// messages that have a receive already are not disturbed.
func (s *SRQ) Fail() {
	s.mu.Lock()
	first := !s.failed && s.ended == nil
	s.failed = true
	for e := s.waiting.Front(); e != nil; e = e.Next() {
		e.Value.(*recvQueue).wake()
	}
	s.mu.Unlock()
	if first {
		s.pd.rnic.raise(Event{ID: EventSRQCatastrophic, SRQ: s})
	}
}
