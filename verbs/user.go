// This file is the views for Non-Privileged Mode consumers of objects that a privileged
// one made for them (Verbs §9.1, §10.1): posting and polling, and no more. A program is
// one address space, so only types separate its parts; they do what the specification
// leaves to operating systems.

package verbs

import (
	"context"
	"slices"
)

// A UserQP is the view of a queue pair that can be given to code which is not
// trusted with the RNIC: it can post to the queue pair's own queues and nothing
// else. It leads to no other object, and what it can name in a work request is
// the memory of the queue pair's protection domain.
//
// Its methods are those of [QP] and may be called by any goroutine.
type UserQP struct{ qp *QP }

// User returns the view of the queue pair for Non-Privileged Mode consumers.
// It cannot Fast-Register (Verbs §10.1). The results besides success
// are ErrRNIC, ErrQP, and ErrModifier for a queue pair that is Privileged: with
// the STag of zero its work requests could name memory of others.
func (q *QP) User() (*UserQP, error) {
	const verb = "make a user's view of a QP"
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.dead:
		return nil, q.rnic.gone(verb, ErrQP)
	case q.cfg.Privileged:
		return nil, fail(verb, ErrModifier, "it is Privileged")
	}
	if err := q.rnic.alive(verb); err != nil {
		return nil, err
	}
	return &UserQP{q}, nil
}

// check is the failure of a verb on a view of nothing, or nil.
func (u *UserQP) check(verb string) error {
	if u == nil || u.qp == nil {
		return fail(verb, ErrQP, "it is no view of any")
	}
	return nil
}

// Num is the QP ID, which completions name; 0 for a view of nothing.
func (u *UserQP) Num() uint32 {
	if u == nil || u.qp == nil {
		return 0
	}
	return u.qp.num
}

// PostSend posts one work request; see [UserQP.PostSends].
func (u *UserQP) PostSend(wr SendWR) error {
	_, err := u.PostSends([]SendWR{wr})
	return err
}

// PostSends posts work requests; see [QP.PostSends]. It refuses OpFastRegister
// with ErrOp (Verbs §10.1).
func (u *UserQP) PostSends(wrs []SendWR) (n int, err error) {
	const verb = "post to SQ"
	if err := u.check(verb); err != nil {
		return 0, err
	}
	i := slices.IndexFunc(wrs, func(wr SendWR) bool { return wr.Op == OpFastRegister })
	if i < 0 {
		return u.qp.PostSends(wrs)
	}
	if n, err = u.qp.PostSends(wrs[:i]); err == nil {
		err = fail(verb, ErrOp, "%v is for Privileged Mode consumers", OpFastRegister)
	}
	return n, err
}

// PostRecv posts one receive; see [QP.PostRecvs].
func (u *UserQP) PostRecv(wr RecvWR) error {
	if err := u.check("post to RQ"); err != nil {
		return err
	}
	return u.qp.PostRecv(wr)
}

// PostRecvs posts receives; see [QP.PostRecvs].
func (u *UserQP) PostRecvs(wrs []RecvWR) (n int, err error) {
	if err := u.check("post to RQ"); err != nil {
		return 0, err
	}
	return u.qp.PostRecvs(wrs)
}

// A UserSRQ is the non-privileged view of a shared receive queue: one can post to it.
type UserSRQ struct{ srq *SRQ }

// User returns the view of the shared receive queue for Non-Privileged Mode
// consumers. The results besides success are ErrRNIC and ErrSRQ.
func (s *SRQ) User() (*UserSRQ, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.check("make a user's view of an S-RQ"); err != nil {
		return nil, err
	}
	return &UserSRQ{s}, nil
}

func (u *UserSRQ) check() error {
	if u == nil || u.srq == nil {
		return fail("post to S-RQ", ErrSRQ, "it is no view of any")
	}
	return nil
}

// PostRecv posts one receive; see [UserSRQ.PostRecvs].
func (u *UserSRQ) PostRecv(wr RecvWR) error {
	_, err := u.PostRecvs([]RecvWR{wr})
	return err
}

// PostRecvs posts receives; see [SRQ.PostRecvs]. It refuses the STag of zero with
// ErrModifier, as a queue pair that is Privileged may take the receive (Verbs
// §8.1.3.2.1).
func (u *UserSRQ) PostRecvs(wrs []RecvWR) (n int, err error) {
	if err := u.check(); err != nil {
		return 0, err
	}
	zero := func(e SGE) bool { return e.STag == 0 && e.Length > 0 }
	i := slices.IndexFunc(wrs, func(wr RecvWR) bool { return slices.ContainsFunc(wr.SGL, zero) })
	if i < 0 {
		return u.srq.PostRecvs(wrs)
	}
	if n, err = u.srq.PostRecvs(wrs[:i]); err == nil {
		err = fail("post to S-RQ", ErrModifier, "the STag of zero is for Privileged Mode consumers")
	}
	return n, err
}

// A UserCQ is the non-privileged view of a completion queue: one can poll it, wait for it, and
// ask for a call of its handler. Completions polled through it name their queue
// pair by QP ID alone: WC.QP is nil.
type UserCQ struct{ cq *CQ }

// User returns the view of the CQ for Non-Privileged Mode consumers. The results
// besides success are ErrRNIC and ErrCQ.
func (cq *CQ) User() (*UserCQ, error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if err := cq.check("make a user's view of a CQ"); err != nil {
		return nil, err
	}
	return &UserCQ{cq}, nil
}

func (u *UserCQ) check(verb string) error {
	if u == nil || u.cq == nil {
		return fail(verb, ErrCQ, "it is no view of any")
	}
	return nil
}

// Poll takes completions; see [CQ.Poll].
func (u *UserCQ) Poll(wcs []WC) int {
	if u == nil || u.cq == nil {
		return 0
	}
	n := u.cq.Poll(wcs)
	for i := range n {
		wcs[i].QP, wcs[i].wqe = nil, nil
	}
	return n
}

// PollOne takes the oldest completion; see [CQ.PollOne].
func (u *UserCQ) PollOne() (WC, error) {
	if err := u.check("poll CQ"); err != nil {
		return WC{}, err
	}
	wc, err := u.cq.PollOne()
	wc.QP, wc.wqe = nil, nil
	return wc, err
}

// Wait waits for a completion; see [CQ.Wait].
func (u *UserCQ) Wait(ctx context.Context) error {
	if err := u.check("wait"); err != nil {
		return err
	}
	return u.cq.Wait(ctx)
}

// RequestNotify asks for a call of the CQ's handler; see [CQ.RequestNotify].
func (u *UserCQ) RequestNotify(kind Notify) error {
	if err := u.check("request completion notification"); err != nil {
		return err
	}
	return u.cq.RequestNotify(kind)
}
