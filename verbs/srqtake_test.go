package verbs_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// Each message takes one receive, in the order in which messages begin to arrive on all
// queue pairs (arrival order). The messages of a queue pair complete in their order at its
// own CQ, with its number.
//
// Claims: V-6.3-2 V-6.3.5-5 V-6.3.5-6 V-9.3.2.1-13 V-10.4.2-3 R-8.1.2-8 DDP-8.3.2-5 S-6.4.3.1-1 V-10.4.2-9
// Claims: V-9.2.1.2-29
func TestReceivesAreTakenInTheOrderOfArrival(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 32}, 3, verbs.QPConfig{})
		s.receives(0, 20, 100)
		want := make([][]done, len(s.ends))
		id := uint64(0)
		for _, to := range []int{0, 0, 1, 2, 1, 0, 2, 2, 2} {
			copy(s.far.buf, []byte{byte(to), byte(id)})
			s.ends[to].send(2)
			quiesce()
			want[to] = append(want[to], done{id, verbs.Success})
			id++
		}
		s.wantPosted(20 - int(id))
		for i, e := range s.ends {
			for _, wc := range wantDone(t, e.cq, want[i]...) {
				if got := s.buf[wc.ID*100 : wc.ID*100+2]; wc.QP != e.qp || wc.QPNum != e.qp.Num() || wc.Bytes != 2 || !bytes.Equal(got, []byte{byte(i), byte(wc.ID)}) {
					t.Errorf("receive %d of %d octets is % x of queue pair %d, expected %d", wc.ID, wc.Bytes, got, wc.QPNum, e.qp.Num())
				}
			}
			wantNone(t, e.cq)
		}
		// One may have all that are left.
		for n := int(id); n < 20; n++ {
			s.ends[1].send(2)
		}
		quiesce()
		s.wantPosted(0)
		if n := s.ends[1].cq.Poll(make([]verbs.WC, 30)); n != 20-int(id) {
			t.Errorf("one queue pair had %d of %d receives", n, 20-int(id))
		}
	})
}

// The segments of messages to several queue pairs come in turns; each message
// keeps the receive that its first segment took.
func TestMessagesInTurnsKeepTheirReceives(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 8}, 0, verbs.QPConfig{})
		a, pa := s.raw(verbs.QPConfig{})
		b, pb := s.raw(verbs.QPConfig{})
		s.receives(0, 3, 100)
		payload := func(fill byte) []byte { return bytes.Repeat([]byte{fill}, 40) }
		sa, sb := iwarptest.Split(iwarptest.Send(1, payload(0xA)...), 20), iwarptest.Split(iwarptest.Send(1, payload(0xB)...), 20)
		for i := range sa {
			check(t, pa.Send(sa[i]))
			quiesce()
			check(t, pb.Send(sb[i]))
			quiesce()
		}
		check(t, pa.Send(iwarptest.Send(2, payload(0xC)...)))
		quiesce()
		wantDone(t, a.cq, done{0, verbs.Success}, done{2, verbs.Success})
		wantDone(t, b.cq, done{1, verbs.Success})
		for i, fill := range []byte{0xA, 0xB, 0xC} {
			if got := s.buf[i*100 : i*100+40]; !bytes.Equal(got, payload(fill)) {
				t.Errorf("receive %d holds % x", i, got)
			}
		}
	})
}

// A receive is outstanding until its completion has been polled, and not a
// moment longer.
//
// Claims: V-6.3.5-2 V-6.3.5-3
func TestAPolledCompletionMakesRoomInTheSharedQueueAtOnce(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 1}, 1, verbs.QPConfig{})
		for id := range uint64(3) {
			s.receives(id, 1, 8)
			wantError(t, s.srq.PostRecv(s.receive(9, 0, 8)), verbs.ErrFull)
			s.ends[0].send(8)
			quiesce()
			wantError(t, s.srq.PostRecv(s.receive(9, 0, 8)), verbs.ErrFull)
			wantDone(t, s.ends[0].cq, done{id, verbs.Success})
		}
	})
}

// A completion that nobody can poll any more keeps no receive: its CQ
// overflowed or was destroyed.
func TestALostCompletionMakesRoomInTheSharedQueue(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 2}, 1, verbs.QPConfig{})
		e := s.ends[0]
		check(t, e.qp.Destroy())
		cq := must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		e.qp = must(s.pd.CreateQP(verbs.QPConfig{SendCQ: s.sendCQ, RecvCQ: cq, SRQ: s.srq}))(t)
		e.peer.Abort()
		quiesce()
		check(t, e.peer.Reset())
		e.connect()
		s.receives(0, 2, 8)
		e.send(8)
		e.send(8)
		quiesce()
		if free := s.attributes().Free; free != 1 {
			t.Errorf("%d receives are free after an overflow, expected 1", free)
		}
		check(t, e.qp.Destroy())
		check(t, cq.Destroy())
		if free := s.attributes().Free; free != 2 {
			t.Errorf("%d receives are free without the CQ, expected 2", free)
		}
	})
}

// Of the memory of receives the domain of the shared queue decides, of all other
// memory that of the queue pair: what it sends and asks for, what its peer
// writes, reads and invalidates.
//
// Claims: V-6.3.5-8 V-7.6.3-2
// Claims: V-6.3.5-10
func TestTheSharedQueuesDomainDecidesAboutReceives(t *testing.T) {
	for _, tt := range []struct {
		name  string
		do    func(s *sharing, e *sharingEnd, own, srqs *verbs.MR)
		recv  verbs.Status
		state verbs.State
	}{
		{"receive in the shared queue's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			check(s.t, s.srq.PostRecv(verbs.RecvWR{ID: 1, SGL: []verbs.SGE{srqs.SGE(0, 8)}}))
			e.send(8)
		}, verbs.Success, verbs.RTS},
		{"receive in the queue pair's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			check(s.t, s.srq.PostRecv(verbs.RecvWR{ID: 1, SGL: []verbs.SGE{own.SGE(0, 8)}}))
			e.send(8)
		}, verbs.InvalidPD, verbs.Error},
		{"invalidation in the queue pair's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			check(s.t, s.srq.PostRecv(verbs.RecvWR{ID: 1}))
			check(s.t, e.peer.PostSend(verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: own.STag()}))
			quiesce()
			if own.Valid() {
				s.t.Error("it is valid still")
			}
		}, verbs.Success, verbs.RTS},
		{"invalidation in the shared queue's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			check(s.t, s.srq.PostRecv(verbs.RecvWR{ID: 1}))
			check(s.t, e.peer.PostSend(verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: srqs.STag()}))
			quiesce()
			if !srqs.Valid() {
				s.t.Error("it was invalidated")
			}
		}, verbs.InvalidateRefused, verbs.Error},
		{"Write to the queue pair's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			s.writes(e, own)
		}, verbs.Success, verbs.RTS},
		{"Write to the shared queue's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			s.writes(e, srqs)
		}, verbs.Flushed, verbs.Error},
		{"Send from the queue pair's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			check(s.t, e.qp.PostSend(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{own.SGE(0, 8)}, Remote: s.far.mr.Remote(0)}))
		}, verbs.Flushed, verbs.RTS},
		{"Send from the shared queue's", func(s *sharing, e *sharingEnd, own, srqs *verbs.MR) {
			check(s.t, e.qp.PostSend(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{srqs.SGE(0, 8)}, Remote: s.far.mr.Remote(0)}))
			wantDone(s.t, s.sendCQ, done{0, verbs.InvalidPD})
		}, verbs.Flushed, verbs.Error},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubbleOf(t, func(t *testing.T) {
				s := newSharing(t, verbs.SRQConfig{WRs: 8}, 0, verbs.QPConfig{})
				pd := must(s.rnic.AllocPD())(t)
				own := must(pd.Register(make([]byte, 100), allRights))(t)
				srqs := must(s.pd.Register(make([]byte, 100), allRights))(t)
				e := s.join(pd, verbs.QPConfig{})
				tt.do(s, e, own, srqs)
				quiesce()
				if tt.recv != verbs.Flushed { // which stands for none
					wantDone(t, e.cq, done{1, tt.recv})
				}
				wantNone(t, e.cq)
				if at := e.qp.State(); at != tt.state {
					t.Errorf("the queue pair is %v, expected %v", at, tt.state)
				}
			})
		})
	}
}

// writes has the peer write to mr, and send a message about it.
func (s *sharing) writes(e *sharingEnd, mr *verbs.MR) {
	s.t.Helper()
	check(s.t, s.srq.PostRecv(verbs.RecvWR{ID: 1}))
	check(s.t, e.peer.PostSend(verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{s.far.mr.SGE(0, 8)}, Remote: mr.Remote(0)}))
	e.send(0)
}

// Invalidation by a message that took a shared receive, Immediate Data, and
// messages of no octets are like any other.
func TestEveryKindOfMessageTakesASharedReceive(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 8}, 1, verbs.QPConfig{})
		s.receives(0, 8, 100)
		ops := []verbs.Op{verbs.OpSend, verbs.OpSendSE, verbs.OpSendInvalidate, verbs.OpSendSEInvalidate, verbs.OpImmediate, verbs.OpImmediateSE}
		var want []done
		for i, op := range ops {
			wr := verbs.SendWR{Op: op, Immediate: [8]byte{7}}
			if op == verbs.OpSendInvalidate || op == verbs.OpSendSEInvalidate {
				wr.Invalidate = s.region(1000, 8, allRights).STag()
			}
			check(t, s.ends[0].peer.PostSend(wr))
			want = append(want, done{uint64(i), verbs.Success})
		}
		quiesce()
		for i, wc := range wantDone(t, s.ends[0].cq, want...) {
			if wc.Solicited != slices.Contains([]verbs.Op{verbs.OpSendSE, verbs.OpSendSEInvalidate, verbs.OpImmediateSE}, ops[i]) {
				t.Errorf("%v: solicited %v", ops[i], wc.Solicited)
			}
		}
		s.wantPosted(2)
	})
}

// The send queue of a queue pair with a shared queue is like any other.
//
// Claims: V-6.3-5
func TestTheSendQueueHasNothingToDoWithTheSharedQueue(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 8}, 1, verbs.QPConfig{SendDepth: 4, IRD: 4, ORD: 4})
		e := s.ends[0]
		check(t, e.peer.PostRecv(verbs.RecvWR{ID: 5, SGL: []verbs.SGE{s.far.mr.SGE(5000, 100)}}))
		lent := s.region(0, 8, verbs.LocalRead)
		for id, wr := range []verbs.SendWR{
			{Op: verbs.OpWrite, SGL: []verbs.SGE{s.mr.SGE(0, 100)}, Remote: s.far.mr.Remote(1000)},
			{Op: verbs.OpRead, SGL: []verbs.SGE{s.mr.SGE(200, 100)}, Remote: s.far.mr.Remote(0)},
			{Op: verbs.OpFetchAdd, SGL: []verbs.SGE{s.mr.SGE(400, 8)}, Remote: s.far.mr.Remote(0)},
			{Op: verbs.OpSend, SGL: []verbs.SGE{s.mr.SGE(0, 100)}, Flags: verbs.ReadFence},
		} {
			wr.ID, wr.Flags = uint64(id), wr.Flags|verbs.Signaled
			check(t, e.qp.PostSend(wr))
		}
		wantError(t, e.qp.PostSend(verbs.SendWR{Op: verbs.OpWrite}), verbs.ErrFull)
		wantDone(t, s.sendCQ, done{0, verbs.Success}, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
		wantDone(t, s.far.recvCQ, done{5, verbs.Success})
		check(t, e.qp.PostSend(verbs.SendWR{Op: verbs.OpInvalidate, Invalidate: lent.STag()}))
		quiesce()
		if lent.Valid() {
			t.Error("an Invalidate Local STag did nothing")
		}
		check(t, e.qp.Close(t.Context()))
	})
}
