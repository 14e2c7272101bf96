package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// enable enables exactly these accesses of the peer's.
func enable(t *testing.T, qp *verbs.QP, state verbs.State, a memory.Access) {
	t.Helper()
	must(qp.Modify(state, verbs.QPModify{Inbound: &a}))(t)
}

// Each kind of access can be enabled by itself, before there is a stream and on one.
func TestInboundAccessCanBeChanged(t *testing.T) {
	for _, tt := range []struct {
		name    string
		enabled memory.Access
		op      verbs.Op
		event   verbs.EventID // 0 is: it is allowed
	}{
		{"an atomic by its own right", verbs.RemoteAtomic, verbs.OpFetchAdd, 0},
		{"an atomic without", verbs.RemoteRead | verbs.RemoteWrite, verbs.OpFetchAdd, verbs.EventIRRQAccess},
		{"a Read by its own right", verbs.RemoteRead, verbs.OpRead, 0},
		{"a Read without", verbs.RemoteWrite | verbs.RemoteAtomic, verbs.OpRead, verbs.EventReadDisabled},
		{"a Write by its own right", verbs.RemoteWrite, verbs.OpWrite, 0},
		{"a Write without", verbs.RemoteRead | verbs.RemoteAtomic, verbs.OpWrite, verbs.EventWriteDisabled},
		{"a Write without any", 0, verbs.OpWrite, verbs.EventWriteDisabled},
		{"a Send without any", 0, verbs.OpSend, 0},
	} {
		for _, state := range []verbs.State{verbs.Idle, verbs.RTS} {
			t.Run(tt.name+" in "+state.String(), func(t *testing.T) {
				overWires(t, func(t *testing.T, w wire) {
					a, b := newSide(t, reads), newSide(t, verbs.QPConfig{IRD: 4, NoRemoteRead: true})
					b.receives(10, 1, 8)
					if state == verbs.Idle {
						enable(t, b.qp, state, tt.enabled)
					}
					w.connect(t, a.qp, b.qp, cm.Params{})
					if state == verbs.RTS {
						enable(t, b.qp, state, tt.enabled)
					}
					a.post(verbs.SendWR{ID: 1, Op: tt.op, SGL: []verbs.SGE{a.mr.SGE(0, 8)}, Remote: b.mr.Remote(0), Flags: verbs.Signaled})
					if tt.event == 0 {
						wantDone(t, a.sendCQ, done{1, verbs.Success})
						return
					}
					b.wantEvents(tt.event)
					reach(t, a.qp, verbs.Error)
				})
			})
		}
	}
}

// Answers to Reads go by the right to write, unless Local Write is enough for their
// sink.
func TestAnswersNeedNoInboundWriteWhereLocalWriteIsEnough(t *testing.T) {
	for _, enough := range []bool{false, true} {
		overWires(t, func(t *testing.T, w wire) {
			a, b := linked(t, w, verbs.QPConfig{ORD: 4, ReadSinkLocalWrite: enough}, reads)
			enable(t, a.qp, verbs.RTS, 0)
			a.post(a.read(1, b, 0, 8))
			if enough {
				wantDone(t, a.sendCQ, done{1, verbs.Success})
				return
			}
			a.wantEvents(verbs.EventWriteDisabled)
		})
	}
}

// A peer that may do one thing may invalidate what it is done with, one that may do
// nothing may not (Verbs §7.9).
func TestInvalidationNeedsSomeInboundAccess(t *testing.T) {
	for _, enabled := range []memory.Access{0, verbs.RemoteAtomic} {
		overWires(t, func(t *testing.T, w wire) {
			a, b := linked(t, w, reads, reads)
			enable(t, b.qp, verbs.RTS, enabled)
			b.receives(10, 1, 8)
			a.post(verbs.SendWR{ID: 1, Op: verbs.OpSendInvalidate, Invalidate: b.mr.STag()})
			want := verbs.Success
			if enabled == 0 {
				want = verbs.InvalidateRefused
			}
			wantDone(t, b.recvCQ, done{10, want})
		})
	}
}

func TestInboundAccessIsOfRemoteRights(t *testing.T) {
	s := newSide(t, reads)
	before := query(t, s.qp)
	wrong := verbs.RemoteRead | verbs.LocalWrite
	_, err := s.qp.Modify(verbs.Idle, verbs.QPModify{Inbound: &wrong})
	wantError(t, err, verbs.ErrModifier)
	if after := query(t, s.qp); after.RemoteRead != before.RemoteRead || after.RemoteWrite != before.RemoteWrite || after.RemoteAtomic != before.RemoteAtomic {
		t.Errorf("it was changed to %+v", after)
	}
	enable(t, s.qp, verbs.Idle, verbs.RemoteAtomic)
	if q := query(t, s.qp); q.RemoteRead || q.RemoteWrite || !q.RemoteAtomic {
		t.Errorf("it is %+v", q)
	}
}
