package verbs_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// An onState is a log handler that runs f when a queue pair changes its state.
type onState struct{ f func(to verbs.State) }

func (h onState) Enabled(context.Context, slog.Level) bool { return true }
func (h onState) WithAttrs([]slog.Attr) slog.Handler       { return h }
func (h onState) WithGroup(string) slog.Handler            { return h }

func (h onState) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if to, ok := a.Value.Any().(verbs.State); ok && a.Key == "to" {
			h.f(to)
		}
		return true
	})
	return nil
}

// A completion in error is visible only after the queue pair has left RTS, so a consumer
// that polls it finds the new state.
func TestTheStateIsLeftBeforeTheCompletionThatTellsWhy(t *testing.T) {
	nothing := verbs.SGE{STag: 1, Length: 8}
	for _, tt := range []struct {
		name    string
		run     func(t *testing.T, a, b *side) // a's queue pair gets into trouble
		status  verbs.Status
		receive bool // it is a receive that completes so
	}{
		{"a Send from no memory", func(t *testing.T, a, b *side) {
			a.post(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{nothing}})
		}, verbs.InvalidSTag, false},
		{"a Read of no memory", func(t *testing.T, a, b *side) {
			a.post(verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{a.mr.SGE(0, 8)}})
		}, verbs.InvalidSTag, false},
		{"an Invalidate of nothing", func(t *testing.T, a, b *side) {
			a.post(verbs.SendWR{Op: verbs.OpInvalidate, Invalidate: 0x100})
		}, verbs.InvalidSTag, false},
		{"a Read whose sink may not be invalidated", func(t *testing.T, a, b *side) {
			shown := must(a.pd.RegisterMR(verbs.MRConfig{Buf: a.buf[:8], Access: allRights}))(t)
			wr := verbs.SendWR{Op: verbs.OpReadInvalidate, SGL: []verbs.SGE{shown.SGE(0, 0)}, Remote: b.mr.Remote(0)}
			wr.SGL[0].STag = 1 // of no octets, so that it is first looked at now
			a.post(wr)
		}, verbs.InvalidSTag, false},
		{"a receive into no memory", func(t *testing.T, a, b *side) {
			check(t, a.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{nothing}}))
			b.post(b.send(0, 0, 8))
		}, verbs.InvalidSTag, true},
		{"a receive that is too short", func(t *testing.T, a, b *side) {
			a.receives(0, 1, 4)
			b.post(b.send(0, 0, 8))
		}, verbs.BaseBounds, true},
		{"a receive that is longer than any message", func(t *testing.T, a, b *side) {
			check(t, a.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{a.mr.SGE(0, -1), a.mr.SGE(0, 1)}}))
			b.post(b.send(0, 0, 8))
		}, verbs.InvalidLength, true},
		{"a receive whose message may not invalidate", func(t *testing.T, a, b *side) {
			a.receives(0, 1, 8)
			b.post(verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: 0x100})
		}, verbs.InvalidateRefused, true},
	} {
		overWires(t, func(t *testing.T, w wire) {
			t.Run(tt.name, func(t *testing.T) {
				var a *side
				logger := slog.New(onState{func(to verbs.State) {
					var wcs [1]verbs.WC
					if to == verbs.Terminate && a.sendCQ.Poll(wcs[:])+a.recvCQ.Poll(wcs[:]) > 0 {
						t.Errorf("a completion (%v) came before the state", wcs[0].Status)
					}
				}})
				a = newSideOf(t, verbs.Config{Logger: logger}, reads)
				b := newSide(t, reads)
				w.connect(t, b.qp, a.qp, cm.Params{})
				b.post(verbs.SendWR{Op: verbs.OpWrite}) // a may send now
				nettest.Await(t, a.qp.Ready())
				tt.run(t, a, b)
				reach(t, a.qp, verbs.Error)
				cq := a.sendCQ
				if tt.receive {
					cq = a.recvCQ
				}
				wantDone(t, cq, done{0, tt.status})
			})
		})
	}
}
