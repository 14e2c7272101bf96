package verbs_test

import (
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// limitPause has messages wait for a receive for so long.
func limitPause(t *testing.T, qp *verbs.QP, d time.Duration) {
	t.Helper()
	must(qp.Modify(qp.State(), verbs.QPModify{MaxPause: &d}))(t)
}

// pausing are queue pairs whose messages wait: with a receive queue of their own and with
// a shared one, where they are and set aside.
func pausing(t *testing.T, f func(t *testing.T, s *table, post func(id uint64))) {
	pausingWith(t, verbs.QPConfig{PauseOnEmptyRQ: true, IRD: 4, ORD: 4}, f)
	t.Run("set aside", func(t *testing.T) { settingAside(t, f) })
}

// settingAside are queue pairs that set messages aside.
func settingAside(t *testing.T, f func(t *testing.T, s *table, post func(id uint64))) {
	pausingWith(t, verbs.QPConfig{PauseOnEmptyRQ: true, SetAside: 1 << 16, IRD: 4, ORD: 4}, f)
}

func pausingWith(t *testing.T, cfg verbs.QPConfig, f func(t *testing.T, s *table, post func(id uint64))) {
	t.Run("own", func(t *testing.T) {
		bubble(t, reads, cfg, func(t *testing.T, s *table) {
			f(t, s, func(id uint64) {
				check(t, s.b.qp.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{s.b.mr.SGE(0, 8)}}))
			})
		})
	})
	t.Run("shared", func(t *testing.T) {
		bubble(t, reads, cfg, func(t *testing.T, s *table) {
			srq := must(s.b.pd.CreateSRQ(verbs.SRQConfig{WRs: 4}))(t)
			cfg := cfg
			cfg.SRQ = srq
			s.a.qp, s.b.qp = s.a.newQP(reads), s.b.newQP(cfg)
			s.x, s.y = iwarptest.Pipe()
			join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
			f(t, s, func(id uint64) {
				check(t, srq.PostRecv(verbs.RecvWR{ID: id, SGL: []verbs.SGE{s.b.mr.SGE(0, 8)}}))
			})
		})
	})
}

func TestAMessageWaitsForAReceiveForItsTime(t *testing.T) {
	pausing(t, func(t *testing.T, s *table, post func(uint64)) {
		limitPause(t, s.b.qp, time.Second)
		s.a.post(s.a.send(1, 0, 8), s.a.send(2, 0, 8))
		time.Sleep(900 * time.Millisecond)
		post(10)
		wantDone(t, s.b.recvCQ, done{10, verbs.Success})
		time.Sleep(900 * time.Millisecond) // each message has a time of its own
		if at := s.b.qp.State(); at != verbs.RTS {
			t.Fatalf("the state is %v", at)
		}
		time.Sleep(200 * time.Millisecond)
		reach(t, s.a.qp, verbs.Error)
		term, ok := s.a.qp.Err().(*rdmap.TerminateError)
		if !ok || term.Layer != 1 || term.EType != uint8(ddp.UntaggedBuffer) || term.Code != uint8(ddp.CodeNoBuffer) {
			t.Errorf("the stream ended with %v", s.a.qp.Err())
		}
		post(11) // nobody waits for it any more
	})
}

func TestAMessageMayFindThatNoneWaits(t *testing.T) {
	pausing(t, func(t *testing.T, s *table, _ func(uint64)) {
		limitPause(t, s.b.qp, 0)
		s.a.post(s.a.send(1, 0, 8))
		reach(t, s.a.qp, verbs.Error)
	})
}

// The limit that a message is under may be lifted or set while it waits.
func TestTheTimeOfAMessageThatWaitsCanBeChanged(t *testing.T) {
	pausing(t, func(t *testing.T, s *table, post func(uint64)) {
		limitPause(t, s.b.qp, time.Second)
		s.a.post(s.a.send(1, 0, 8))
		time.Sleep(500 * time.Millisecond)
		limitPause(t, s.b.qp, -1)
		time.Sleep(time.Hour)
		if at := s.b.qp.State(); at != verbs.RTS {
			t.Fatalf("the state is %v", at)
		}
		limitPause(t, s.b.qp, time.Second)
		quiesce()
		reach(t, s.a.qp, verbs.Error)
	})
}

func TestAPauseCanOnlyBeLimitedWhereThereIsOne(t *testing.T) {
	s := newSide(t, reads)
	d := time.Second
	_, err := s.qp.Modify(verbs.Idle, verbs.QPModify{MaxPause: &d})
	wantError(t, err, verbs.ErrModifier)
}
