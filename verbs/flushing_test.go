package verbs_test

import (
	"testing"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A lingerer is an LLP stream whose Close waits until closing is closed.
type lingerer struct {
	*mpa.Conn
	closing chan struct{}
}

func (l *lingerer) Close() error {
	<-l.closing
	return l.Conn.Close()
}

// While what a stream has left is still being flushed the queue pair does not
// leave Error; afterwards it does (Verbs §6.2.4, §9.5.1.5).
//
// Claims: V-6.2.4-8 V-9.2.5.3-13 V-9.5.1.5-2
// Claims: V-8.2.4-4
func TestErrorIsNotLeftBeforeEverythingIsFlushed(t *testing.T) {
	bubbleOf(t, func(t *testing.T) {
		a, b := newSide(t, reads), newSide(t, reads)
		x, y := iwarptest.Pipe()
		slow := &lingerer{newMPA(x), make(chan struct{})}
		check(t, a.qp.Establish(slow, verbs.Terms{Initiator: true}))
		check(t, b.qp.Establish(newMPA(y), verbs.Terms{}))
		a.receives(1, 2, 8)
		a.qp.Abort()
		quiesce()
		before := must(a.qp.Query())(t)
		if before.State != verbs.Error {
			t.Fatalf("the queue pair is %v", before.State)
		}
		wantError(t, a.qp.Reset(), verbs.ErrFlushing)
		_, err := a.qp.Modify(verbs.Idle, verbs.QPModify{})
		wantError(t, err, verbs.ErrFlushing)
		if after := must(a.qp.Query())(t); after.State != verbs.Error {
			t.Errorf("the queue pair is %v", after.State)
		}
		wantNone(t, a.recvCQ)
		close(slow.closing)
		quiesce()
		wantDone(t, a.recvCQ, done{1, verbs.Flushed}, done{2, verbs.Flushed})
		check(t, a.qp.Reset())
		if at := a.qp.State(); at != verbs.Idle {
			t.Errorf("the queue pair is %v", at)
		}
	})
}
