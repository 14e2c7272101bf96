package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// What goes wrong while a queue pair closes is reported when it is over: the stream
// is gone and the state is Error (Verbs §6.2.5).
//
// Claims: V-6.2.5-8
func TestABadCloseIsToldWhenItIsOver(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		told := 0
		check(t, s.a.rnic.SetAsyncHandler(func(e verbs.Event) {
			told++
			q := must(e.QP.Query())(t)
			if e.ID != verbs.EventBadClose || q.State != verbs.Error || q.LLP != nil {
				t.Errorf("at %v the queue pair is %v, with the stream %v", e.ID, q.State, q.LLP)
			}
		}))
		s.a.post(s.a.write(1, s.b, 0, 8)) // so that the peer may send
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
		quiesce()
		s.x.Hold() // our FIN, so that the peer goes on
		go func() { _ = s.a.qp.Close(t.Context()) }()
		quiesce()
		if at := s.a.qp.State(); at != verbs.Closing {
			t.Fatalf("the queue pair is %v", at)
		}
		s.b.post(s.b.write(1, s.a, 0, 8))
		quiesce()
		s.x.Resume()
		quiesce()
		if told != 1 {
			t.Errorf("%d events", told)
		}
	})
}
