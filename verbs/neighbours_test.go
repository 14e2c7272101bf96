package verbs_test

import (
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// bubbleOf runs f in a bubble, for tests that make their own sides.
func bubbleOf(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(t)
		synctest.Wait()
	})
}

// Two queue pairs of one RNIC and one domain, with a peer each. Whatever the one
// peer does, and whatever becomes of its queue pair, the other goes on working
// (Verbs §10, §10.1.1, §10.4).
//
// Claims: V-10-1 V-10.1.1-1 V-10.4-1 V-10.4.2-1
func TestAPeerHarmsItsOwnQueuePairOnly(t *testing.T) {
	type peers struct {
		bad  *side           // the offender
		ours *side           // who suffers it
		hurt *verbs.QP       // with this queue pair
		wire *iwarptest.Conn // the offender's end
	}
	for _, tt := range []struct {
		name  string
		do    func(p *peers)
		state verbs.State
		event verbs.EventID // 0: none
	}{
		{"more messages than receives", func(p *peers) { p.bad.post(p.bad.send(1, 0, 8), p.bad.send(2, 0, 8), p.bad.send(3, 0, 8)) }, verbs.Error, verbs.EventRQMSNRange},
		{"a message longer than the receive", func(p *peers) { p.bad.post(p.bad.send(1, 0, 1000)) }, verbs.Error, 0},
		{"a Write to an unknown STag", func(p *peers) {
			wr := p.bad.write(1, p.ours, 0, 8)
			wr.Remote.STag ^= 1
			p.bad.post(wr)
		}, verbs.Error, verbs.EventProtectionSTag},
		{"a Read beyond a region", func(p *peers) {
			wr := p.bad.read(1, p.ours, 0, 8)
			wr.Remote.TO = 1 << 40
			p.bad.post(wr)
		}, verbs.Error, verbs.EventIRRQBounds},
		{"an invalidation of what it may not", func(p *peers) {
			local := p.ours.region(0, 8, verbs.LocalRead)
			p.bad.post(verbs.SendWR{Op: verbs.OpSendInvalidate, Invalidate: local.STag()})
		}, verbs.Error, 0},
		{"Reads whose answers it does not take", func(p *peers) {
			for i := range uint64(4) {
				p.bad.post(p.bad.read(i, p.ours, 0, len(p.ours.buf)))
			}
		}, verbs.RTS, 0},
		{"a Terminate", func(p *peers) { check(p.bad.t, p.bad.qp.Terminate()) }, verbs.Error, verbs.EventTerminateReceived},
		{"a reset", func(p *peers) { p.bad.qp.Abort() }, verbs.Error, verbs.EventLLPReset},
		{"a frame with a fault", func(p *peers) {
			p.wire.Corrupt(p.wire.Written()+4, 0x10)
			p.bad.post(p.bad.write(1, p.ours, 0, 8))
		}, verbs.Error, verbs.EventCRC},
		{"half a message", func(p *peers) {
			p.wire.FinAfter(p.wire.Written() + 20)
			p.bad.post(p.bad.write(1, p.ours, 0, 8))
		}, verbs.Error, verbs.EventLLPLost},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubbleOf(t, func(t *testing.T) {
				bad, good, ours := newSide(t, reads), newSide(t, reads), newSide(t, reads)
				hurt := ours.qp
				x, y := iwarptest.Pipe()
				join(t, bad.qp, hurt, x, y, cm.Params{})
				ours.qp = ours.newQP(reads) // the neighbour, with CQs and a domain in common
				u, v := iwarptest.Pipe()
				join(t, good.qp, ours.qp, u, v, cm.Params{})
				quiesce()
				check(t, hurt.PostRecv(verbs.RecvWR{ID: 1, SGL: []verbs.SGE{ours.mr.SGE(0, 8)}}))
				if tt.state == verbs.RTS {
					y.Hold() // what it does not take
				}

				tt.do(&peers{bad, ours, hurt, x})
				quiesce()
				if at := hurt.State(); at != tt.state {
					t.Errorf("the offender's queue pair is %v, expected %v: %v", at, tt.state, hurt.Err())
				}
				var want []verbs.EventID
				if tt.event != 0 {
					want = append(want, tt.event)
				}
				ours.wantEvents(want...)
				for _, wc := range ours.recvd() {
					if wc.ID != 1 {
						t.Errorf("a completion of receive %d: %v", wc.ID, wc.Status)
					}
				}

				// The neighbour serves and works, in every direction.
				copy(good.buf[5000:], "a good neighbour")
				ours.receives(10, 1, 100)
				good.post(good.write(1, ours, 5000, 16), good.read(2, ours, 5000, 16), good.send(3, 5000, 16))
				wantDone(t, good.sendCQ, done{1, verbs.Success}, done{2, verbs.Success}, done{3, verbs.Success})
				wantDone(t, ours.recvCQ, done{10, verbs.Success})
				ours.post(ours.write(4, good, 5000, 16), ours.read(5, good, 5000, 16))
				wantDone(t, ours.sendCQ, done{4, verbs.Success}, done{5, verbs.Success})
				if got := string(ours.buf[5000:5016]); got != "a good neighbour" {
					t.Errorf("the neighbour's octets arrived as %q", got)
				}
				check(t, good.qp.Close(t.Context()))
				hurt.Abort()
			})
		})
	}
}

// recvd takes what is in the receive CQ.
func (s *side) recvd() []verbs.WC {
	wcs := make([]verbs.WC, 64)
	return wcs[:s.recvCQ.Poll(wcs)]
}

// A consumer that fills up its own queues, and overflows its own CQ, takes
// nothing from the queue pairs of others (Verbs §10).
//
// Claims: V-10-2
func TestAConsumerExhaustsItsOwnQueuesOnly(t *testing.T) {
	bubble(t, reads, reads, func(t *testing.T, s *table) {
		cq := must(s.a.rnic.CreateCQ(verbs.CQConfig{Entries: 1}))(t)
		greedy, peer := s.a.newQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq}), s.b.newQP(verbs.QPConfig{})
		x, y := iwarptest.Pipe()
		join(t, greedy, peer, x, y, cm.Params{})
		x.Hold()
		for greedy.PostSend(s.a.write(1, s.b, 0, 1<<19)) == nil {
			continue
		}
		for greedy.PostRecv(verbs.RecvWR{}) == nil {
			continue
		}
		quiesce()
		works := func() {
			t.Helper()
			s.b.receives(10, 1, 100)
			s.a.post(s.a.send(2, 0, 8), s.a.read(3, s.b, 0, 8))
			wantDone(t, s.a.sendCQ, done{2, verbs.Success}, done{3, verbs.Success})
			wantDone(t, s.b.recvCQ, done{10, verbs.Success})
		}
		works() // while they are full
		x.Resume()
		reach(t, greedy, verbs.Error) // its CQ overflows
		works()
	})
}

// Each queue pair has its own IRD: if the requests of one peer fill it, those of another
// queue pair's peer are still answered (RFC 5042 §6.4.3.3).
//
// Claims: S-6.4.3.3-1 S-A-3
func TestRequestQueuesAreNotShared(t *testing.T) {
	bubble(t, reads, verbs.QPConfig{IRD: 1, ORD: 4}, func(t *testing.T, s *table) {
		other := newSide(t, verbs.QPConfig{ORD: 1})
		qp := s.b.newQP(verbs.QPConfig{IRD: 1})
		x, y := iwarptest.Pipe()
		join(t, other.qp, qp, x, y, cm.Params{})
		s.y.Hold() // the answer, which thus stays in the queue
		s.a.post(s.a.read(1, s.b, 0, len(s.b.buf)))
		quiesce()
		wantNone(t, s.a.sendCQ)
		for i := range uint64(3) {
			other.post(other.read(i, s.b, 0, 8))
			wantDone(t, other.sendCQ, done{i, verbs.Success})
		}
		s.y.Resume()
		wantDone(t, s.a.sendCQ, done{1, verbs.Success})
	})
}

// A region serves every queue pair of its domain, and none of another
// (Verbs §10.3).
//
// Claims: V-10.3-4 V-10.3-2
// Claims: V-5.2-3
// Claims: S-3-2
func TestARegionServesTheQueuePairsOfItsDomain(t *testing.T) {
	overWires(t, func(t *testing.T, w wire) {
		a, b, c := newSide(t, reads), newSide(t, reads), newSide(t, reads)
		w.connect(t, a.qp, b.qp, cm.Params{})
		w.connect(t, c.qp, b.newQP(reads), cm.Params{}) // of the same domain
		a.buf[0], c.buf[1] = 'a', 'c'
		a.post(a.write(1, b, 0, 1), a.read(2, b, 0, 0))
		c.post(c.write(1, b, 1, 1), c.read(2, b, 1, 0))
		wantDone(t, a.sendCQ, done{1, verbs.Success}, done{2, verbs.Success})
		wantDone(t, c.sendCQ, done{1, verbs.Success}, done{2, verbs.Success})
		a.post(a.read(3, b, 100, 1)) // so that the Writes are placed
		c.post(c.read(3, b, 100, 1))
		wantDone(t, a.sendCQ, done{3, verbs.Success})
		wantDone(t, c.sendCQ, done{3, verbs.Success})
		if got := string(b.buf[:2]); got != "ac" {
			t.Errorf("both wrote %q", got)
		}

		d := newSide(t, reads)
		foreign := must(must(b.rnic.AllocPD())(t).CreateQP(verbs.QPConfig{SendCQ: b.sendCQ, RecvCQ: b.recvCQ, IRD: 4}))(t)
		w.connect(t, d.qp, foreign, cm.Params{})
		d.buf[0] = 'd'
		d.post(d.write(1, b, 0, 1))
		reach(t, foreign, verbs.Error)
		if got := string(b.buf[:2]); got != "ac" {
			t.Errorf("another domain's queue pair made it %q", got)
		}
		for _, qp := range []*verbs.QP{a.qp, b.qp, c.qp} {
			if at := qp.State(); at != verbs.RTS {
				t.Errorf("a queue pair that was in order is %v", at)
			}
		}
	})
}

// One buffer is read by some and written by others: the rights are those of the
// STag, and an STag can be for one queue pair alone (Verbs §10.3).
//
// Claims: V-10.3-1 V-10.3-5
func TestAnSTagGivesItsOwnRightsToItsOwnQueuePair(t *testing.T) {
	const reader, writer = 0, 1
	rights := [2]memory.Access{verbs.LocalRead | verbs.LocalWrite | verbs.RemoteRead, verbs.LocalRead | verbs.LocalWrite | verbs.RemoteWrite}
	for _, tt := range []struct {
		name     string
		by, with int // which queue pair, with whose STag
		op       verbs.Op
		may      bool
	}{
		{"the reader reads", reader, reader, verbs.OpRead, true},
		{"the writer writes", writer, writer, verbs.OpWrite, true},
		{"the reader writes", reader, reader, verbs.OpWrite, false},
		{"the writer reads", writer, writer, verbs.OpRead, false},
		{"the reader reads with the writer's STag", reader, writer, verbs.OpRead, false},
		{"the reader writes with the writer's STag", reader, writer, verbs.OpWrite, false},
		{"the writer reads with the reader's STag", writer, reader, verbs.OpRead, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubbleOf(t, func(t *testing.T) {
				owner := newSide(t, reads)
				peers := [2]*side{newSide(t, reads), newSide(t, reads)}
				qps := [2]*verbs.QP{owner.qp, owner.newQP(reads)}
				var tags [2]*verbs.MR
				for i, qp := range qps {
					x, y := iwarptest.Pipe()
					join(t, peers[i].qp, qp, x, y, cm.Params{})
					tags[i] = must(owner.pd.RegisterMR(verbs.MRConfig{Buf: owner.buf[:8], Access: rights[i], QP: qp}))(t)
				}
				p := peers[tt.by]
				for i := range 8 {
					p.buf[i] = 0xEE
				}
				p.post(verbs.SendWR{Op: tt.op, SGL: []verbs.SGE{p.mr.SGE(0, 8)}, Remote: tags[tt.with].Remote(0)})
				quiesce()
				if at := qps[tt.by].State(); (at == verbs.RTS) != tt.may {
					t.Errorf("the queue pair is %v", at)
				}
				if at := qps[1-tt.by].State(); at != verbs.RTS {
					t.Errorf("the other queue pair is %v", at)
				}
				if written := owner.buf[0] == 0xEE; written != (tt.may && tt.op == verbs.OpWrite) {
					t.Errorf("written is %v", written)
				}
				if read := p.buf[0] == 0; read != (tt.may && tt.op == verbs.OpRead) {
					t.Errorf("read is %v", read)
				}
			})
		})
	}
}
