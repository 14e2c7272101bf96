package verbs_test

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// wantLow fails the test unless these are all events so far, each of the shared
// queue.
func (s *sharing) wantLow(n int) {
	s.t.Helper()
	quiesce()
	want := make([]verbs.EventID, n)
	for i := range want {
		want[i] = verbs.EventSRQLimit
	}
	for _, e := range s.wantEvents(want...) {
		if e.Resource != verbs.ResourceSRQ || e.SRQ != s.srq || e.RNIC != s.rnic || e.QP != nil || e.CQ != nil {
			s.t.Errorf("the event is %+v", e)
		}
	}
}

// The S-RQ Limit is armed with the queue. It raises one event when fewer receives are left
// than the limit, before all are gone, and another only after it has been armed again;
// arming it twice is arming it once. Posting raises nothing, however few they
// are, and nothing else is disturbed.
//
// Claims: V-9.2.4-1 V-6.3.8-1 V-6.3.8-2 V-6.3.8-3 V-6.3.8-7 V-10.4.2-4
// Claims: V-9.2.4.3-1 V-9.5.3-40
// Claims: S-6.4.3.1-2
func TestTheSharedQueueTellsOnceThatItRunsLow(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 16, Limit: 4}, 2, verbs.QPConfig{})
		armed := func(want bool) {
			t.Helper()
			if got := s.attributes().Armed; got != want {
				t.Errorf("armed is %v, expected %v", got, want)
			}
		}
		sent := 0
		send := func(n int) {
			t.Helper()
			for range n {
				s.ends[sent%2].send(8)
				quiesce()
				wantDone(t, s.ends[sent%2].cq, done{uint64(sent), verbs.Success})
				sent++
			}
		}
		s.receives(0, 8, 8)
		s.wantLow(0)
		armed(true)
		send(4) // 4 are left
		s.wantLow(0)
		send(1)
		s.wantLow(1)
		armed(false)
		send(2)
		s.wantLow(1)

		for range 2 {
			if a := must(s.srq.Modify(verbs.SRQModify{Arm: true}))(t); !a.Armed {
				t.Error("it is not armed")
			}
		}
		s.wantLow(1)
		s.receives(8, 1, 8) // 2 are there: few, but that was asked for
		s.wantLow(1)
		send(1)
		s.wantLow(2)
		send(1)
		s.wantLow(2)
		s.wantPosted(0)

		// Another limit, armed, and then none.
		must(s.srq.Modify(verbs.SRQModify{Limit: new(2), Arm: true}))(t)
		s.receives(9, 6, 8)
		send(4)
		s.wantLow(2)
		if a := must(s.srq.Modify(verbs.SRQModify{Limit: new(0)}))(t); a.Armed || a.Limit != 0 {
			t.Errorf("%+v without a limit", a)
		}
		send(2)
		s.wantLow(2)
		for _, e := range s.ends {
			if at := e.qp.State(); at != verbs.RTS {
				t.Errorf("a queue pair is %v", at)
			}
		}
	})
}

// Without a limit there is no event; a new limit alone arms nothing.
func TestALimitThatIsNotArmedTellsNothing(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 16}, 1, verbs.QPConfig{})
		if a := must(s.srq.Modify(verbs.SRQModify{Limit: new(10)}))(t); a.Armed || a.Limit != 10 {
			t.Errorf("it is %+v", a)
		}
		s.receives(0, 2, 8)
		s.ends[0].send(8)
		s.wantLow(0)
		must(s.srq.Modify(verbs.SRQModify{WRs: new(9)}))(t) // below a limit that is not armed
		_, err := s.srq.Modify(verbs.SRQModify{Arm: true})
		wantError(t, err, verbs.ErrSRQLimit)
	})
}

// A message that finds the queue empty raises the event, too, if the limit is armed:
// without it a stream that pauses for a receive would wait forever.
//
// Claims: DDP-7.1-6 DDP-7.1-8
func TestAMessageThatFindsTheSharedQueueEmptyIsToldOf(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 16, Limit: 1}, 1, verbs.QPConfig{PauseOnEmptyRQ: true})
		s.ends[0].send(8)
		s.wantLow(1)
		must(s.srq.Modify(verbs.SRQModify{Arm: true}))(t)
		s.receives(0, 2, 8) // one is taken at once
		s.wantLow(1)
		wantDone(t, s.ends[0].cq, done{0, verbs.Success})
		must(s.srq.Modify(verbs.SRQModify{Limit: new(2), Arm: true}))(t)
		s.ends[0].send(8)
		s.ends[0].send(8)
		s.wantLow(2)
		must(s.srq.Modify(verbs.SRQModify{Arm: true}))(t)
		s.receives(2, 1, 8) // handed over: none is left
		s.wantLow(3)
	})
}

// The QP RQ Limit raises one event when more messages are in progress: they have their
// receive, but not their completion. Over a transport in order that is at most one, so a
// limit of 0 reports the next message, and a larger limit none. The one that Create QP
// arms is not 0.
//
// Claims: V-6.3.8-5 V-6.3.8-6 V-10.4.2-5
// Claims: V-9.2.5.3-5
// Claims: V-9.5.3-41
// Claims: S-6.4.3.1-2
func TestTheQPRQLimitTellsOfMessagesInProgress(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		s := newSharing(t, verbs.SRQConfig{WRs: 16}, 0, verbs.QPConfig{})
		e, p := s.raw(verbs.QPConfig{RQLimit: 1})
		other, po := s.raw(verbs.QPConfig{})
		s.receives(0, 16, 100)
		query := func(limit int, armed bool) {
			t.Helper()
			a := must(e.qp.Query())(t)
			if a.RQLimit != limit || a.RQLimitArmed != armed {
				t.Errorf("the limit is %d, armed %v, expected %d, %v", a.RQLimit, a.RQLimitArmed, limit, armed)
			}
		}
		events := func(n int) {
			t.Helper()
			quiesce()
			want := make([]verbs.EventID, n)
			for i := range want {
				want[i] = verbs.EventRQLimit
			}
			for _, ev := range s.wantEvents(want...) {
				if ev.Resource != verbs.ResourceQP || ev.QP != e.qp || ev.SRQ != nil {
					t.Errorf("the event is %+v", ev)
				}
			}
		}
		msn := uint32(0)
		begin := func() (rest []byte) {
			t.Helper()
			msn++
			parts := iwarptest.Split(iwarptest.Send(msn, bytes.Repeat([]byte{1}, 40)...), 20)
			check(t, p.Send(parts[0]))
			quiesce()
			return parts[1]
		}
		query(1, true)
		check(t, p.Send(begin()))
		query(1, true)
		events(0)

		must(e.qp.Modify(verbs.RTS, verbs.QPModify{RQLimit: new(0), ArmRQLimit: true}))(t)
		query(0, true)
		check(t, po.Send(iwarptest.Send(1, 1, 2)))
		events(0) // another queue pair's
		rest := begin()
		query(0, false)
		events(1)
		check(t, p.Send(rest))
		check(t, p.Send(begin()))
		events(1)
		for range 2 {
			must(e.qp.Modify(verbs.RTS, verbs.QPModify{ArmRQLimit: true}))(t)
		}
		check(t, p.Send(begin()))
		check(t, p.Send(begin()))
		events(2)
		quiesce()
		if n := e.cq.Poll(make([]verbs.WC, 10)); n != 5 {
			t.Errorf("%d messages arrived, expected 5", n)
		}
		wantDone(t, other.cq, done{1, verbs.Success})

		_, err := e.qp.Modify(verbs.RTS, verbs.QPModify{RQLimit: new(17)})
		wantError(t, err, verbs.ErrRQLimit)
		query(0, false)
	})
}
