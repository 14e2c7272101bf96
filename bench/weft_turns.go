// Ping-pong over several connections in turn, whose queue pairs share a completion queue:
// one consumer at either end.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// A turns is the players of one end, at one completion queue.
type turns struct {
	cq      *verbs.CQ
	players []*player
	byQP    map[*verbs.QP]*player
	over    int // connections over which the stop has come
}

// newTurns makes the queue pairs and has connect connect each.
func (e *weftEnd) newTurns(job Job, remotes []Remote, connect func(*link) error) (*turns, error) {
	w, p := job.Workload, paceOf(job.Workload)
	cq, err := e.rnic.CreateCQ(verbs.CQConfig{Entries: w.connections() * (p.sends + p.receives)})
	if err != nil {
		return nil, err
	}
	t := &turns{cq: cq, byQP: map[*verbs.QP]*player{}}
	for i := range w.connections() {
		if err := t.add(e, job, i, remotes, connect); err != nil {
			return nil, errors.Join(err, t.free())
		}
	}
	return t, nil
}

func (t *turns) add(e *weftEnd, job Job, number int, remotes []Remote, connect func(*link) error) error {
	l, err := e.newLinkAt(t.cq, job, number, remotes)
	if err != nil {
		return err
	}
	l.shared = true
	p, err := l.player()
	if err != nil {
		return errors.Join(err, l.free())
	}
	t.players = append(t.players, p)
	t.byQP[l.qp] = p
	return l.explain(connect(l))
}

func (t *turns) free() error {
	var err error
	for _, p := range t.players {
		err = errors.Join(err, p.free())
	}
	return errors.Join(err, t.cq.Destroy())
}

// await waits for a message, and returns whose it is; nil if all have stopped.
func (t *turns) await(ctx context.Context) (*player, error) {
	for t.over < len(t.players) {
		wc, err := t.players[0].next(ctx)
		switch {
		case err != nil:
			return nil, err
		case t.over > 0 && wc.Status == verbs.Flushed: // the others end
		case wc.Status != verbs.Success:
			return nil, wc.Err()
		case wc.Op != verbs.OpRecv:
		case wc.Bytes == replySize:
			t.over++
		default:
			p := t.byQP[wc.QP]
			return p, p.qp.PostRecv(p.recv)
		}
	}
	return nil, nil
}

// stop ends the connections.
func (t *turns) stop(ctx context.Context) error {
	var err error
	for _, p := range t.players {
		err = errors.Join(err, p.stop())
	}
	for _, p := range t.players {
		err = errors.Join(err, p.conn.Shutdown(ctx))
	}
	return err
}

// pingAll is the active end.
func (e *weftEnd) pingAll(ctx context.Context, job Job, ready Ready) (s Sample, err error) {
	t, err := e.newTurns(job, ready.Remotes, func(l *link) error {
		nc, err := dialReady(ctx, job, ready)
		if err != nil {
			return err
		}
		l.conn, err = cm.Connect(ctx, l.qp, nc, cm.Params{MPA: l.mpa()})
		return err
	})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, t.free()) }()
	run := newStopwatch(job)
	trips := newTrips()
	for i, t0 := 0, time.Now(); !run.overAt(t0); i++ {
		p := t.players[i%len(t.players)]
		if err := p.play(p.sent + 1); err != nil {
			return s, err
		}
		if from, err := t.await(ctx); err != nil || from != p {
			return s, errors.Join(err, fmt.Errorf("the answer of connection %d was expected", i%len(t.players)))
		}
		run.add(1)
		t1 := time.Now()
		trips.add(run, t1.Sub(t0))
		t0 = t1
	}
	s = run.stop()
	s.Trips = trips.percentiles()
	return s, errors.Join(t.stop(ctx), e.verify(job, s.Total))
}

// pongAll is the passive end.
func (e *weftEnd) pongAll(ctx context.Context, ln *net.TCPListener, job Job) (err error) {
	t, err := e.newTurns(job, job.Remotes, func(l *link) error {
		nc, err := accept(ctx, ln)
		if err != nil {
			return err
		}
		req, err := cm.Receive(ctx, nc, l.mpa())
		if err != nil {
			return err
		}
		l.conn, err = req.Accept(ctx, l.qp, cm.Params{MPA: l.mpa()})
		return err
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.free()) }()
	p, err := t.await(ctx)
	for p != nil && err == nil {
		if err = p.play(p.sent + 1); err == nil {
			p, err = t.await(ctx)
		}
	}
	if err != nil {
		return err
	}
	for _, p := range t.players {
		if _, err := p.qp.WaitState(ctx, verbs.Idle, verbs.Error); err != nil {
			return err
		}
	}
	return nil
}
