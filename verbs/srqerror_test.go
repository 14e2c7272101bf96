package verbs_test

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A queue pair whose stream ends in the middle of a message loses the receive of
// that message and no other, whatever ends it: those that no message has taken
// stay, and serve others.
//
// Claims: V-6.3.6-2 V-6.3.6-4 V-6.3.6-1
func TestAQueuePairThatEndsTakesNoReceivesWithIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(s *sharing, e *sharingEnd, p *iwarptest.Peer)
		recv verbs.Status // Success: none
	}{
		{"abort", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) { e.qp.Abort() }, verbs.Flushed},
		{"destruction", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) { check(s.t, e.qp.Destroy()) }, verbs.Flushed},
		{"Terminate", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) { check(s.t, e.qp.Terminate()) }, verbs.Flushed},
		{"the peer's Terminate", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) {
			check(s.t, p.Send(iwarptest.Terminate(0, 2, 0xFF, iwarptest.NoHeaders, nil)))
		}, verbs.Flushed},
		{"reset", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) { check(s.t, p.Reset()) }, verbs.Flushed},
		{"FIN", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) { check(s.t, p.CloseWrite()) }, verbs.Flushed},
		{"a violation of protocol", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) {
			check(s.t, p.Send(iwarptest.Send(3)))
		}, verbs.Flushed},
		{"a message that is too long", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) {
			check(s.t, p.Send(iwarptest.Untagged(3, 0, 0, 1, 20, bytes.Repeat([]byte{1}, 81)...)))
		}, verbs.BaseBounds},
		{"memory that was deallocated", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) {
			quiesce()
			check(s.t, s.mr.Deallocate())
			s.mr = must(s.pd.Register(s.buf, allRights))(s.t)
			check(s.t, p.Send(iwarptest.Untagged(3, 0, 0, 1, 20, 1)))
		}, verbs.InvalidSTag},
		{"nothing: the message ends", func(s *sharing, e *sharingEnd, p *iwarptest.Peer) {
			check(s.t, p.Send(iwarptest.Untagged(3, 0, 0, 1, 20, 1)))
			quiesce()
			check(s.t, p.CloseWrite())
		}, verbs.Success},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubbleOf(t, func(t *testing.T) {
				s := newSharing(t, verbs.SRQConfig{WRs: 16}, 1, verbs.QPConfig{})
				e, p := s.raw(verbs.QPConfig{})
				s.receives(0, 1, 100)
				check(t, p.Send(iwarptest.ClearLast(iwarptest.Send(1, bytes.Repeat([]byte{1}, 20)...))))
				quiesce()
				tt.end(s, e, p)
				quiesce()
				_ = p.Close() // it may be closed
				quiesce()
				if at := e.qp.State(); at == verbs.RTS || at == verbs.Terminate {
					t.Errorf("the queue pair is %v", at)
				}
				wantDone(t, e.cq, done{0, tt.recv})
				wantNone(t, e.cq)

				s.receives(1, 3, 100)
				s.ends[0].send(100)
				s.ends[0].send(100)
				quiesce()
				wantDone(t, s.ends[0].cq, done{1, verbs.Success}, done{2, verbs.Success})
				s.wantPosted(1)
				if free := s.attributes().Free; free != 15 {
					t.Errorf("%d receives are free, expected 15", free)
				}
			})
		})
	}
}

// Receives that no message has taken stay when a queue pair is closed, or
// terminated, or in Error, whenever they were posted.
//
// Claims: V-6.3.6-4
func TestStatesOfAQueuePairDoNotFlushTheSharedQueue(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 16}, 4, verbs.QPConfig{})
		s.receives(0, 1, 100)
		check(t, s.ends[0].qp.Close(t.Context()))
		check(t, s.ends[1].qp.Terminate())
		s.receives(1, 1, 100)
		s.ends[2].qp.Abort()
		quiesce()
		s.receives(2, 1, 100)
		s.wantPosted(3)
		s.ends[3].send(100)
		quiesce()
		wantDone(t, s.ends[3].cq, done{0, verbs.Success})
		for _, e := range s.ends[:3] {
			wantNone(t, e.cq)
		}
	})
}

// An error of a shared receive is reported by its completion, on the queue pair that took
// it. The other queue pairs go on.
//
// Claims: V-6.3.6-1 V-6.3.5-9
func TestABadSharedReceiveIsACompletionOfWhoTookIt(t *testing.T) {
	for _, tt := range []struct {
		name string
		wr   func(s *sharing) verbs.RecvWR
		want verbs.Status
	}{
		{"unknown STag", func(s *sharing) verbs.RecvWR {
			wr := s.receive(7, 0, 100)
			wr.SGL[0].STag ^= 1
			return wr
		}, verbs.InvalidSTag},
		{"beyond the region", func(s *sharing) verbs.RecvWR { return s.receive(7, len(s.buf)-50, 100) }, verbs.BaseBounds},
		{"no right", func(s *sharing) verbs.RecvWR {
			return verbs.RecvWR{ID: 7, SGL: []verbs.SGE{s.region(0, 100, verbs.LocalRead).SGE(0, 100)}}
		}, verbs.AccessViolation},
		{"wraps", func(s *sharing) verbs.RecvWR {
			wr := s.receive(7, 0, 100)
			wr.SGL[0].TO = 1<<64 - 50
			return wr
		}, verbs.WrapError},
		{"too short", func(s *sharing) verbs.RecvWR { return s.receive(7, 0, 99) }, verbs.BaseBounds},
		{"longer than any message", func(s *sharing) verbs.RecvWR {
			return verbs.RecvWR{ID: 7, SGL: []verbs.SGE{s.mr.SGE(0, -1), s.mr.SGE(0, 1)}}
		}, verbs.InvalidLength},
		{"STag of zero without the privilege", func(s *sharing) verbs.RecvWR {
			return verbs.RecvWR{ID: 7, SGL: []verbs.SGE{{Length: 100}}}
		}, verbs.InvalidSTag},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubbleOf(t, func(t *testing.T) {
				s := newSharing(t, verbs.SRQConfig{WRs: 16}, 2, verbs.QPConfig{})
				check(t, s.srq.PostRecv(tt.wr(s)))
				s.receives(8, 1, 100)
				s.ends[0].send(100)
				quiesce()
				wantDone(t, s.ends[0].cq, done{7, tt.want})
				reach(t, s.ends[0].qp, verbs.Error)
				s.ends[1].send(100)
				quiesce()
				wantDone(t, s.ends[1].cq, done{8, verbs.Success})
				s.wantEvents() // completions reported everything
			})
		})
	}
}

// A receive of more octets than any message has completes in error on a queue
// pair with receives of its own, too.
func TestAReceiveLongerThanAnyMessageFails(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		check(t, s.b.qp.PostRecv(verbs.RecvWR{ID: 7, SGL: []verbs.SGE{s.b.mr.SGE(0, -1), s.b.mr.SGE(0, 1)}}))
		s.b.receives(8, 1, 100)
		s.a.post(s.a.send(1, 0, 8))
		wantDone(t, s.b.recvCQ, done{7, verbs.InvalidLength}, done{8, verbs.Flushed})
		quiesce()
		s.b.wantEvents()
	})
}

// The STag of zero in a shared receive is for the queue pair that takes it to
// have or not, whether the shared queue is of its domain or of another.
//
// Claims: V-6.3.5-9
func TestTheQueuePairDecidesAboutTheSTagOfZeroInASharedReceive(t *testing.T) {
	for _, same := range []bool{true, false} {
		bubbleOf(t, func(t *testing.T) {
			physical := make([]byte, 1000)
			s := &sharing{side: newSideOf(t, verbs.Config{Physical: physical}, verbs.QPConfig{}), far: newSide(t, verbs.QPConfig{})}
			s.srq = must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 4}))(t)
			pd := s.pd
			if !same {
				pd = must(s.rnic.AllocPD())(t)
			}
			may, mayNot := s.join(pd, verbs.QPConfig{Privileged: true}), s.join(pd, verbs.QPConfig{})
			for id := range uint64(2) {
				check(t, s.srq.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{{TO: 100, Length: 8}}}))
			}
			copy(s.far.buf, "to there")
			may.send(8)
			quiesce()
			wantDone(t, may.cq, done{0, verbs.Success})
			if got := string(physical[100:108]); got != "to there" {
				t.Errorf("physical memory holds %q", got)
			}
			copy(s.far.buf, "not this")
			mayNot.send(8)
			quiesce()
			wantDone(t, mayNot.cq, done{1, verbs.InvalidSTag})
			if got := string(physical[100:108]); got != "to there" {
				t.Errorf("physical memory holds %q", got)
			}
		})
	}
}

// The failure of a shared queue is reported by an event of its own. A queue pair fails
// when a message needs a receive from it: with an event of the queue pair and a Terminate
// 0/2/07, and the receives it has are flushed. A message that already has its receive
// completes, and a queue pair without messages stays in RTS.
//
// Claims: V-6.3.6-3
// Claims: V-9.5.3-36 V-9.5.3-42 V-8.3.3-11 V-8.3.3-12
func TestAFailedSharedQueueEndsThoseThatWantAReceive(t *testing.T) {
	for _, pause := range []bool{false, true} {
		bubbleOf(t, func(t *testing.T) {
			s := newSharing(t, verbs.SRQConfig{WRs: 16}, 0, verbs.QPConfig{})
			e, p := s.raw(verbs.QPConfig{PauseOnEmptyRQ: pause})
			idle, _ := s.raw(verbs.QPConfig{})
			s.receives(0, 4, 100)
			check(t, p.Send(iwarptest.ClearLast(iwarptest.Send(1, bytes.Repeat([]byte{1}, 20)...))))
			quiesce()
			check(t, s.srq.Fail())
			for _, ev := range s.wantEvents(verbs.EventSRQCatastrophic) {
				if ev.Resource != verbs.ResourceSRQ || ev.SRQ != s.srq || ev.QP != nil {
					t.Errorf("the event is %+v", ev)
				}
			}
			check(t, p.Send(iwarptest.Untagged(3, 0, 0, 1, 20, 1)))
			quiesce()
			wantDone(t, e.cq, done{0, verbs.Success})
			check(t, p.Send(iwarptest.Send(2, 1)))
			u, err := p.Next()
			check(t, err)
			if seg := must(iwarptest.Parse(u))(t); seg.Opcode != 7 || seg.Payload[0] != 0x02 || seg.Payload[1] != 0x07 {
				t.Errorf("the peer got % x, expected a Terminate 0/2/07", u)
			}
			if ev := s.wantEvents(verbs.EventSRQCatastrophic, verbs.EventSRQError)[1]; ev.Resource != verbs.ResourceQP || ev.QP != e.qp {
				t.Errorf("the event is %+v", ev)
			}
			check(t, p.Close())
			reach(t, e.qp, verbs.Error)
			wantNone(t, e.cq)
			if at := idle.qp.State(); at != verbs.RTS {
				t.Errorf("a queue pair without messages is %v", at)
			}
			for name, verb := range srqVerbs(s.srq, s.sendCQ, s.pd) {
				if err := verb(); err == nil {
					t.Errorf("%s of a failed queue works", name)
				} else {
					wantError(t, err, verbs.ErrSRQ)
				}
			}
			check(t, e.qp.Destroy())
			wantError(t, s.srq.Destroy(), verbs.ErrSRQInUse)
			check(t, idle.qp.Destroy())
			check(t, s.srq.Destroy())
		})
	}
}

// Those that pause for a receive when the shared queue fails want one.
//
// Claims: V-6.3.6-3
func TestAFailedSharedQueueEndsThoseThatPause(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 16}, 3, verbs.QPConfig{PauseOnEmptyRQ: true})
		s.ends[0].send(8)
		s.ends[1].send(8)
		quiesce()
		check(t, s.srq.Fail())
		quiesce()
		s.wantEvents(verbs.EventSRQCatastrophic, verbs.EventSRQError, verbs.EventSRQError)
		reach(t, s.ends[0].qp, verbs.Error)
		reach(t, s.ends[1].qp, verbs.Error)
		reach(t, s.ends[2].qp, verbs.RTS)
	})
}

// A consumer with only a view of a shared queue cannot make a privileged queue pair
// receive into memory named by the STag of zero.
//
// Claims: V-8.1.3.2.1-1
func TestUsersPostNoSTagOfZeroToASharedQueue(t *testing.T) {
	s := newSideOf(t, verbs.Config{Physical: make([]byte, 100)}, verbs.QPConfig{})
	srq := must(s.pd.CreateSRQ(verbs.SRQConfig{WRs: 8}))(t)
	s.newQP(verbs.QPConfig{SRQ: srq, Privileged: true})
	u := must(srq.User())(t)
	zero := verbs.RecvWR{SGL: []verbs.SGE{s.mr.SGE(0, 8), {TO: 8, Length: 8}}}
	wantError(t, u.PostRecv(zero), verbs.ErrModifier)
	n, err := u.PostRecvs([]verbs.RecvWR{{}, {SGL: []verbs.SGE{{}}}, zero, {}}) // one of no octets names nothing
	wantError(t, err, verbs.ErrModifier)
	if a := must(srq.Query())(t); n != 2 || a.Posted != 2 {
		t.Errorf("%d were posted, %d are there, expected 2", n, a.Posted)
	}
	check(t, srq.PostRecv(zero))
}
