package verbs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A sharing is a side with a shared receive queue, and queue pairs that use it.
// Each is connected to a queue pair of one other side, and completes its
// receives at a CQ of its own.
type sharing struct {
	*side
	srq  *verbs.SRQ
	far  *side
	ends []*sharingEnd
}

// A sharingEnd is one of those queue pairs. What it sends can be held up at y,
// what its peer sends at x.
type sharingEnd struct {
	t        testing.TB
	qp, peer *verbs.QP
	cq       *verbs.CQ
	far      *side
	x, y     *iwarptest.Conn
}

// newSharing makes one with n queue pairs as cfg says.
func newSharing(t testing.TB, srq verbs.SRQConfig, n int, cfg verbs.QPConfig) *sharing {
	t.Helper()
	s := &sharing{side: newSide(t, verbs.QPConfig{}), far: newSide(t, verbs.QPConfig{})}
	s.srq = must(s.pd.CreateSRQ(srq))(t)
	for range n {
		s.join(s.pd, cfg)
	}
	return s
}

// join adds a queue pair of the domain pd.
func (s *sharing) join(pd *verbs.PD, cfg verbs.QPConfig) *sharingEnd {
	s.t.Helper()
	e := s.newEnd(pd, cfg)
	e.peer = s.far.newQP(verbs.QPConfig{SendDepth: 256, IRD: 4, ORD: 4})
	e.connect()
	return e
}

// newEnd adds one that is not connected.
func (s *sharing) newEnd(pd *verbs.PD, cfg verbs.QPConfig) *sharingEnd {
	s.t.Helper()
	e := &sharingEnd{t: s.t, far: s.far}
	e.cq = must(s.rnic.CreateCQ(verbs.CQConfig{Entries: 256}))(s.t)
	cfg.SendCQ, cfg.RecvCQ, cfg.SRQ, cfg.Extensions = s.sendCQ, e.cq, s.srq, true
	e.qp = must(pd.CreateQP(cfg))(s.t)
	s.ends = append(s.ends, e)
	return e
}

// connect connects the two queue pairs. The peer sends first: an empty Write.
func (e *sharingEnd) connect() {
	e.t.Helper()
	e.x, e.y = iwarptest.Pipe()
	join(e.t, e.peer, e.qp, e.x, e.y, cm.Params{})
	check(e.t, e.peer.PostSend(verbs.SendWR{Op: verbs.OpWrite}))
}

// send has the peer send n octets, from 0 on of its memory.
func (e *sharingEnd) send(n int) {
	e.t.Helper()
	check(e.t, e.peer.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{e.far.mr.SGE(0, n)}}))
}

// raw adds a queue pair of the side's domain whose peer is made by hand.
func (s *sharing) raw(cfg verbs.QPConfig) (*sharingEnd, *iwarptest.Peer) {
	s.t.Helper()
	e := s.newEnd(s.pd, cfg)
	return e, e.rawPeer()
}

// rawPeer connects the queue pair to a peer made by hand.
func (e *sharingEnd) rawPeer() *iwarptest.Peer {
	e.t.Helper()
	e.x, e.y = iwarptest.Pipe()
	accepted := make(chan error, 1)
	go func() {
		ctx := context.Background()
		req, err := cm.Receive(ctx, e.y, mpa.Config{})
		if err == nil {
			_, err = req.Accept(ctx, e.qp, cm.Params{})
		}
		accepted <- err
	}()
	p := iwarptest.NewPeer(e.x)
	_, err := p.Initiate(iwarptest.Startup{CRC: true})
	check(e.t, errors.Join(err, <-accepted))
	return p
}

// receives posts n receives of length octets each to the shared queue, as one
// list, with IDs from first on.
func (s *sharing) receives(first uint64, n, length int) {
	s.t.Helper()
	wrs := make([]verbs.RecvWR, n)
	for i := range wrs {
		wrs[i] = s.receive(first+uint64(i), i*length, length)
	}
	_, err := s.srq.PostRecvs(wrs)
	check(s.t, err)
}

func (s *sharing) receive(id uint64, off, length int) verbs.RecvWR {
	return verbs.RecvWR{ID: id, SGL: []verbs.SGE{s.mr.SGE(off, length)}}
}

// attributes are those of the shared queue.
func (s *sharing) attributes() verbs.SRQAttributes {
	s.t.Helper()
	return must(s.srq.Query())(s.t)
}

// wantPosted fails the test unless so many receives wait for a message.
func (s *sharing) wantPosted(n int) {
	s.t.Helper()
	if got := s.attributes().Posted; got != n {
		s.t.Errorf("%d receives are posted, expected %d", got, n)
	}
}
