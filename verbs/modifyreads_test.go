package verbs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// A hookedLLP is a stream whose StreamMessage is the test's.
type hookedLLP struct {
	*mpa.Conn
	message func() error
}

func (l hookedLLP) StreamMessage(context.Context, []byte) error { return l.message() }

// Modify takes Reads from the pools of IRD and ORD before it sends the stream message, and
// returns Reads only after it has succeeded. So the pools are never exceeded.
func TestModifyHasItsReadsBeforeTheStreamMessage(t *testing.T) {
	for _, tt := range []struct {
		name     string
		ird, ord int // 4 of each are had, 4 of each are left
		result   error
	}{
		{"more of both", 8, 8, verbs.ErrLLP},
		{"more than there is", 9, 8, verbs.ErrResources},
		{"more than there is, the other way", 8, 9, verbs.ErrResources},
		{"less of both", 0, 1, verbs.ErrLLP},
		{"more of one, less of the other", 8, 1, verbs.ErrLLP},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSideOf(t, verbs.Config{Limits: verbs.Limits{TotalIRD: 8, TotalORD: 8}}, reads)
			sent := false
			x, _ := iwarptest.Pipe()
			llp := hookedLLP{newMPA(x), func() error {
				sent = true
				for { // others take what is left
					qp, err := s.pd.CreateQP(verbs.QPConfig{SendCQ: s.sendCQ, RecvCQ: s.recvCQ, IRD: 1, ORD: 1})
					if err != nil {
						return errors.New("the message was not sent")
					}
					t.Cleanup(func() { _ = qp.Destroy() }) // the RNIC may be closed
				}
			}}
			_, err := s.qp.Modify(verbs.RTS, verbs.QPModify{LLP: llp, StreamMessage: []byte("x"), IRD: new(tt.ird), ORD: new(tt.ord)})
			wantError(t, err, tt.result)
			if sent != (tt.result == verbs.ErrLLP) {
				t.Errorf("the message was sent: %v", sent)
			}
			if q := query(t, s.qp); q.IRD != 4 || q.ORD != 4 {
				t.Errorf("the queue pair has %d and %d, expected 4 and 4", q.IRD, q.ORD)
			}
			var ird, ord int
			for _, qp := range s.rnic.QPs() {
				q := query(t, qp)
				ird, ord = ird+q.IRD, ord+q.ORD
			}
			if u := s.rnic.Usage(); ird > 8 || ord > 8 || u.IRD != ird || u.ORD != ord {
				t.Errorf("all together have %d and %d of 8 and 8, %d and %d are counted", ird, ord, u.IRD, u.ORD)
			}
		})
	}
}

// The Read that opens a peer-to-peer stream has its place whatever IRD is, also
// when something else of the queue pair changes before it comes (RFC 6581 §9.1).
func TestModifyLeavesTheReadyToReceiveMessageItsPlace(t *testing.T) {
	a, b := newSide(t, verbs.QPConfig{}), newSide(t, verbs.QPConfig{})
	x, y := iwarptest.Pipe()
	terms := func(p mpa.Params) (*mpa.Conn, verbs.Terms) {
		p.Revision, p.CRC = mpa.Revision2, true
		nc := y
		if p.Initiator {
			nc = x
		}
		return mpa.NewConn(nc, p), verbs.Terms{Initiator: p.Initiator, RTR: rdmap.RTRRead}
	}
	check(t, b.qp.Establish(terms(mpa.Params{})))
	must(b.qp.Modify(verbs.RTS, verbs.QPModify{SendDepth: new(8)}))(t)
	check(t, a.qp.Establish(terms(mpa.Params{Initiator: true})))
	for _, s := range []*side{a, b} {
		select {
		case <-s.qp.Ready():
		case <-time.After(patience):
			t.Fatalf("the stream did not open: %v, %v", a.qp.Err(), b.qp.Err())
		}
	}
	check(t, b.qp.Close(t.Context()))
	reach(t, a.qp, verbs.Idle)
}
