// The Weft half: what a process keeps for all samples, and one sample's queue
// pair and connection.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A weftEnd is the RNIC of one process and the memory that all its samples use.
type weftEnd struct {
	rnic *verbs.RNIC
	pd   *verbs.PD
	mr   *verbs.MR
	buf  []byte // what mr names
}

// newWeftEnd opens an RNIC and registers memory: the largest window and, behind
// it, what ends a stream.
func newWeftEnd() (*weftEnd, error) {
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return nil, err
	}
	e := &weftEnd{rnic: rnic, buf: make([]byte, max(windowSize, maxSize)+replySize)}
	if e.pd, err = rnic.AllocPD(); err == nil {
		e.mr, err = e.pd.Register(e.buf, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite)
	}
	if err != nil {
		return nil, errors.Join(err, rnic.Close())
	}
	return e, nil
}

func (e *weftEnd) close() error { return e.rnic.Close() }

// A ping-pong's messages leave from offset 0 and arrive at landing.
const landing = 4096

// prepare fills the memory that a sample's messages leave from and clears that
// where they arrive. source says which of the two a stream needs at this end.
func (e *weftEnd) prepare(job Job, source bool) Remote {
	w := job.Workload
	window := e.buf[:w.window()]
	switch {
	case w.Shape == PingPong:
		fillPattern(e.buf[:w.Size], job.Seed)
		clear(e.buf[landing : landing+w.Size])
	case source:
		fillPattern(window, job.Seed)
	default:
		clear(window)
	}
	return Remote{STag: uint32(e.mr.STag()), TO: e.mr.Base()}
}

// verify checks the memory where a sample's messages arrived at this end. It is
// called when the connection has ended.
func (e *weftEnd) verify(job Job, messages uint64) error {
	w := job.Workload
	arrived := e.buf[:min(messages, uint64(w.slots()))*uint64(w.Size)]
	if w.Shape == PingPong {
		// The last octets of an RDMA Write carry its number.
		arrived = e.buf[landing : landing+w.Size-numberSize]
	}
	return checkPattern(arrived, job.Seed)
}

// A link is the queue pair and connection of one sample. Its methods belong to
// one goroutine.
type link struct {
	job    Job
	mr     *verbs.MR
	memory []byte // what mr names
	remote verbs.Remote
	qp     *verbs.QP
	cq     *verbs.CQ
	conn   *cm.Conn
	wcs    [64]verbs.WC
	ready  []verbs.WC // polled and not looked at yet
}

// spinFor is how long a polling queue pair's reader polls before it parks:
// longer than any ping-pong's turn on loopback.
const spinFor = 200 * time.Microsecond

// readDepth is the number of RDMA Reads in flight, IRD and ORD: what hardware
// of this kind commonly offers.
const readDepth = 128

// newLink makes the queue pair for job.
func (e *weftEnd) newLink(job Job, remote Remote) (*link, error) {
	p := paceOf(job.Workload)
	l := &link{job: job, mr: e.mr, memory: e.buf, remote: verbs.Remote{STag: memory.STag(remote.STag), TO: remote.TO}}
	var err error
	cq := verbs.CQConfig{Entries: p.sends + p.receives}
	qp := verbs.QPConfig{
		SendDepth: p.sends, RecvDepth: p.receives, SendSGEs: 1, RecvSGEs: 1,
		IRD: readDepth, ORD: readDepth,
	}
	if job.Workload.Spin {
		cq.Spin = spinFor
	}
	if l.cq, err = e.rnic.CreateCQ(cq); err != nil {
		return nil, err
	}
	qp.SendCQ, qp.RecvCQ = l.cq, l.cq
	if l.qp, err = e.pd.CreateQP(qp); err != nil {
		return nil, errors.Join(err, l.cq.Destroy())
	}
	return l, nil
}

// free ends the queue pair, gracefully or not, and the completion queue.
func (l *link) free() error {
	return errors.Join(l.qp.Destroy(), l.cq.Destroy())
}

// initiate is the active end of a sample over Weft.
func (e *weftEnd) initiate(ctx context.Context, nc *net.TCPConn, job Job, remote Remote) (s Sample, err error) {
	l, err := e.newLink(job, remote)
	if err != nil {
		return s, errors.Join(err, nc.Close())
	}
	defer func() { err = l.explain(errors.Join(err, l.free())) }()
	// Receives that the target's first message needs are posted first.
	var run func(context.Context) (Sample, error)
	if job.Workload.Shape == PingPong {
		run, err = l.ping()
	} else {
		run, err = l.stream()
	}
	if err != nil {
		return s, errors.Join(err, nc.Close())
	}
	if l.conn, err = cm.Connect(ctx, l.qp, nc, cm.Params{MPA: l.mpa()}); err != nil {
		return s, err
	}
	if s, err = run(ctx); err != nil {
		return s, err
	}
	return s, l.conn.Close(ctx)
}

// serve is the passive end. It returns when the initiator has closed.
func (e *weftEnd) serve(ctx context.Context, nc *net.TCPConn, job Job) (err error) {
	l, err := e.newLink(job, job.Remote)
	if err != nil {
		return errors.Join(err, nc.Close())
	}
	defer func() { err = l.explain(errors.Join(err, l.free())) }()
	var run func(context.Context) error
	if job.Workload.Shape == PingPong {
		run, err = l.pong()
	} else {
		run, err = l.sink()
	}
	if err != nil {
		return errors.Join(err, nc.Close())
	}
	req, err := cm.Receive(ctx, nc, l.mpa())
	if err != nil {
		return err
	}
	if l.conn, err = req.Accept(ctx, l.qp, cm.Params{MPA: l.mpa()}); err != nil {
		return err
	}
	if err := run(ctx); err != nil {
		return err
	}
	_, err = l.qp.WaitState(ctx, verbs.Idle, verbs.Error)
	return err
}

// explain adds why the queue pair left RTS, which says more than the flushed
// request by which it was noticed.
func (l *link) explain(err error) error {
	if err == nil {
		return nil
	}
	if why := l.qp.Err(); why != nil {
		return fmt.Errorf("%w (%w)", err, why)
	}
	return err
}

// completion returns the next completion, waiting for it if there is none.
func (l *link) completion(ctx context.Context) (*verbs.WC, error) {
	for len(l.ready) == 0 {
		n := l.cq.Poll(l.wcs[:])
		if n == 0 {
			if err := l.cq.Wait(ctx); err != nil {
				return nil, err
			}
			continue
		}
		l.ready = l.wcs[:n]
	}
	wc := &l.ready[0]
	l.ready = l.ready[1:]
	if wc.Status != verbs.Success {
		return nil, fmt.Errorf("%v: %w", wc.Op, wc.Status)
	}
	return wc, nil
}

// mpa is how this end sets up its half of the connection: with CRC unless the
// workload is without, which takes both ends.
func (l *link) mpa() mpa.Config {
	cfg := mpa.Config{NoCRC: !l.job.Workload.CRC}
	if l.job.Workload.Spin {
		cfg.Spin = spinFor
	}
	return cfg
}
