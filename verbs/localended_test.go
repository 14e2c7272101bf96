package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// What is posted when the stream has been ended changes no memory, though it would
// need no stream: it is flushed, whether the rest of the stream is gone or not
// (Verbs §6.2.3, §6.2.4).
//
// Claims: V-6.2.3-6 V-6.2.4-3 V-6.2.4-6 V-6.2.4-7
func TestLocalRequestsAreNotExecutedWhenTheStreamHasBeenEnded(t *testing.T) {
	for name, end := range map[string]func(s *table){
		"Error":     func(s *table) { s.a.qp.Abort() },
		"Terminate": func(s *table) { s.x.Hold(); check(s.a.t, s.a.qp.Terminate()) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, able, able, func(t *testing.T, s *table) {
				lent, kept := s.a.region(0, 8, bindable), s.a.region(0, 8, allRights)
				free, mw := must(s.a.pd.AllocMR(1, true))(t), s.a.window()
				end(s)
				s.a.post(inval(1, kept.STag()), bind(2, mw.Binding(lent, 0, 8, verbs.RemoteRead)), fast(3, free.FastRegister(s.a.buf[:8], verbs.LocalRead)))
				s.x.Resume()
				reach(t, s.a.qp, verbs.Error)
				wantDone(t, s.a.sendCQ, done{1, verbs.Flushed}, done{2, verbs.Flushed}, done{3, verbs.Flushed})
				if !kept.Valid() || mw.Valid() || free.Valid() {
					t.Errorf("invalidated %v, bound %v, registered %v", !kept.Valid(), mw.Valid(), free.Valid())
				}
				// What is held in Idle is no exception.
				quiesce()
				check(t, s.a.qp.Reset())
				s.a.post(inval(4, kept.STag()))
				s.a.qp.Abort()
				wantDone(t, s.a.sendCQ, done{4, verbs.Flushed})
				check(t, mw.Deallocate())
				check(t, s.a.qp.Destroy())
			})
		})
	}
}
