// This file is the shared receive queue as its consumer sees it (Verbs §6.3,
// §9.2.4).

package verbs

import (
	"container/list"
	"sync"
)

// An SRQConfig describes a shared receive queue to be created (Verbs §9.2.4.1).
type SRQConfig struct {
	WRs  int // receives outstanding at a time, at least 1
	SGEs int // elements of one scatter/gather list; 0 means 4

	// Limit, if above 0, arms the S-RQ Limit: EventSRQLimit is raised once when fewer
	// than so many receives are posted and not used.
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
// belongs to the queue pair's. Queue pairs do
// not affect each other, except that a peer can use up all receives: the limits of
// Verbs §6.3.8 and the completions, which name their queue pair, show which one does.
//
// Methods may be called by any goroutine.
type SRQ struct {
	pd   *PD
	sges int

	modify sync.Mutex // one Modify or Destroy at a time; before RNIC.mu

	mu      sync.Mutex // after RNIC.mu
	dead    bool       // destroyed
	failed  bool       // Fail was called
	qps     int        // queue pairs that use it
	wrs     int        // receives outstanding at a time; those that are not are spare
	limit   int        // the S-RQ Limit
	armed   bool       // EventSRQLimit is to be raised for fewer posted receives
	posted  wqeList    // not claimed by a message, oldest first
	spare   wqeList    // free
	waiting list.List  // *recvQueues that wait for a receive
}

// SRQAttributes are the attributes of a shared receive queue (Verbs §9.2.4.2).
type SRQAttributes struct {
	PD     *PD
	WRs    int  // receives outstanding at a time
	SGEs   int  // elements of one scatter/gather list
	Limit  int  // the S-RQ Limit
	Armed  bool // EventSRQLimit will be raised for fewer posted receives than Limit
	Posted int  // receives that no message has taken
	Free   int  // receives that can be posted now
	QPs    int  // queue pairs that use it
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
	case cfg.SGEs < 0:
		return nil, fail(verb, ErrModifier, "%d elements, at least 1 is expected", cfg.SGEs)
	case cfg.SGEs > l.SGEs:
		return nil, r.limited(verb, ErrSGEMax, "SGEs", "%d were asked for, the limit is %d", cfg.SGEs, l.SGEs)
	case len(r.srqs) >= l.SRQs:
		return nil, r.limited(verb, ErrResources, "SRQs", "the limit is %d shared receive queues", l.SRQs)
	}
	if err := r.checkSRQWRs(verb, cfg.WRs); err != nil {
		return nil, err
	}
	if cfg.Limit < 0 || cfg.Limit > cfg.WRs {
		return nil, fail(verb, ErrSRQLimit, "%d, expected 0 to %d, the number of work requests", cfg.Limit, cfg.WRs)
	}
	if err := r.reserveSRQWRs(verb, cfg.WRs); err != nil {
		return nil, err
	}
	s := &SRQ{pd: pd, sges: cfg.SGEs, limit: cfg.Limit, armed: cfg.Limit > 0}
	s.grow(newRecvWQEs(cfg.WRs, cfg.SGEs))
	r.srqs[s] = struct{}{}
	pd.srqs++
	return s, nil
}

// checkSRQWRs is the failure of a verb that is to make room for n receives.
func (r *RNIC) checkSRQWRs(verb string, n int) error {
	switch {
	case n <= 0:
		return fail(verb, ErrModifier, "%d work requests, at least 1 is expected", n)
	case n > r.limits.SRQWRs:
		return r.limited(verb, ErrWRMax, "SRQWRs", "%d were asked for, the limit is %d", n, r.limits.SRQWRs)
	}
	return nil
}

// reserveSRQWRs counts n more receives of shared queues, or fewer if n is negative;
// needs RNIC.mu.
func (r *RNIC) reserveSRQWRs(verb string, n int) error {
	if l := r.limits.TotalSRQWRs; n > 0 && l > 0 && n > l-r.srqWRs {
		return r.limited(verb, ErrResources, "TotalSRQWRs", "%d more work requests, of %d in all shared receive queues together %d are left", n, l, l-r.srqWRs)
	}
	r.srqWRs += n
	return nil
}

// grow adds free receives; needs mu, unless s is new.
func (s *SRQ) grow(wqes []recvWQE) {
	for i := range wqes {
		s.spare.pushBack(&wqes[i])
	}
	s.wrs += len(wqes)
}

// PD returns the protection domain of the memory that its receives name.
func (s *SRQ) PD() *PD { return s.pd }

// check is the failure of a verb on s, or nil; needs mu.
func (s *SRQ) check(verb string) error {
	switch {
	case s.dead:
		return s.pd.rnic.gone(verb, ErrSRQ)
	case s.failed:
		return fail(verb, ErrSRQ, "it has failed: destroy it")
	}
	return s.pd.rnic.alive(verb)
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
	low := s.serve() && s.reachLimit()
	s.mu.Unlock()
	if low {
		s.raiseLimit()
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

// Query returns the attributes of the shared receive queue (Verbs §9.2.4.2). The results
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

// attach and detach count the queue pairs that use s; limit is the QP RQ Limit of the
// queue pair.
func (s *SRQ) attach(verb string, limit int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check(verb); err != nil {
		return err
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
