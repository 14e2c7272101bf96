// Connections over Weft that are made, carry one Send, and end.

package main

import (
	"context"
	"errors"
	"net"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// connects makes one connection after the other until the time is up. An empty message ends
// the sample.
func (e *weftEnd) connects(ctx context.Context, job Job, ready Ready) (Sample, error) {
	run := newStopwatch(job)
	for !run.over() {
		if err := e.connectOne(ctx, job, ready, job.Workload.Size); err != nil {
			return Sample{}, err
		}
		run.add(1)
	}
	s := run.stop()
	return s, e.connectOne(ctx, job, ready, 0)
}

// connectOne makes a queue pair and a connection, sends size octets, and ends both.
func (e *weftEnd) connectOne(ctx context.Context, job Job, ready Ready, size int) (err error) {
	l, err := e.newLink(job, 0, ready.Remotes)
	if err != nil {
		return err
	}
	defer func() { err = l.explain(errors.Join(err, l.free())) }()
	nc, err := dialReady(ctx, job, ready)
	if err != nil {
		return err
	}
	if l.conn, err = cm.Connect(ctx, l.qp, nc, cm.Params{MPA: l.mpa()}); err != nil {
		return err
	}
	if err := l.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{l.mr.SGE(0, size)}}); err != nil {
		return err
	}
	return l.conn.Shutdown(ctx)
}

// serveConnects takes one connection after the other, until the empty message.
func (e *weftEnd) serveConnects(ctx context.Context, ln *net.TCPListener, job Job) error {
	for {
		octets, err := e.serveConnect(ctx, ln, job)
		if octets == 0 || err != nil {
			return err
		}
	}
}

// serveConnect takes a connection and its message, of so many octets, and waits for its end.
func (e *weftEnd) serveConnect(ctx context.Context, ln *net.TCPListener, job Job) (octets uint32, err error) {
	l, err := e.newLink(job, 0, job.Remotes)
	if err != nil {
		return 0, err
	}
	defer func() { err = l.explain(errors.Join(err, l.free())) }()
	if err := l.qp.PostRecv(verbs.RecvWR{SGL: []verbs.SGE{l.mr.SGE(0, job.Workload.Size)}}); err != nil {
		return 0, err
	}
	nc, err := accept(ctx, ln)
	if err != nil {
		return 0, err
	}
	req, err := cm.Receive(ctx, nc, l.mpa())
	if err != nil {
		return 0, err
	}
	if l.conn, err = req.Accept(ctx, l.qp, cm.Params{MPA: l.mpa()}); err != nil {
		return 0, err
	}
	wc, err := l.completion(ctx)
	if err != nil {
		return 0, err
	}
	_, err = l.qp.WaitState(ctx, verbs.Idle, verbs.Error)
	return wc.Bytes, err
}
