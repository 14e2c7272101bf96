// The Weft half: what a process keeps for all samples, and how it takes either
// part in one.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/verbs"
)

// A weftEnd is the RNIC of one process and the memory that all its samples use.
// It is Weft's driver.
type weftEnd struct {
	rnic  *verbs.RNIC
	pd    *verbs.PD
	areas [maxConnections]area
}

// An area is the memory of one connection: the largest window and, behind it,
// what ends a stream.
type area struct {
	mr     *verbs.MR
	memory []byte // what mr names
}

// maxConnections is how many connections of a sample have traffic at most.
const maxConnections = 64

// newWeftEnd opens an RNIC and registers memory.
func newWeftEnd() (*weftEnd, error) {
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		return nil, err
	}
	e := &weftEnd{rnic: rnic}
	e.pd, err = rnic.AllocPD()
	for i := range e.areas {
		if err != nil {
			break
		}
		a := &e.areas[i]
		size := maxSize
		if i == 0 {
			size = largest // only this one is ever used for messages so large
		}
		a.memory = make([]byte, size+replySize)
		a.mr, err = e.pd.Register(a.memory, verbs.LocalRead|verbs.LocalWrite|verbs.RemoteRead|verbs.RemoteWrite|verbs.RemoteAtomic)
	}
	if err != nil {
		return nil, errors.Join(err, rnic.Close())
	}
	return e, nil
}

func (e *weftEnd) close() error { return e.rnic.Close() }

// areasOf is the memory of w's connections; a crowd shares that of one.
func (e *weftEnd) areasOf(w Workload) []area {
	if w.crowded() {
		return e.areas[:1]
	}
	return e.areas[:w.connections()]
}

// A ping-pong's messages leave from offset 0 and arrive at landing.
const landing = 4096

// offer prepares the initiator's memory: it has the data, except of Reads.
func (e *weftEnd) offer(job Job) []Remote {
	if job.Workload.Shape == Register {
		return nil
	}
	return e.lay(job, job.Workload.Op != Read)
}

// lay fills the memory that a sample's messages leave from and clears that
// where they arrive. source says which of the two a stream needs at this end.
func (e *weftEnd) lay(job Job, source bool) []Remote {
	w := job.Workload
	var remotes []Remote
	for _, a := range e.areasOf(w) {
		switch window := a.memory[:w.window()]; {
		case w.Shape == PingPong || w.Op == FetchAdd:
			fillPattern(a.memory[:w.Size], job.Seed)
			clear(a.memory[landing : landing+w.Size])
		case source:
			fillPattern(window, job.Seed)
		default:
			clear(window)
		}
		remotes = append(remotes, Remote{STag: uint32(a.mr.STag()), TO: a.mr.Base()})
	}
	return remotes
}

// verify checks the memory where a sample's messages arrived at the target, all
// messages being so many. It is called when the connections have ended.
func (e *weftEnd) verify(job Job, messages uint64) error {
	w := job.Workload
	if w.Shape == Register {
		return nil
	}
	each := messages / uint64(w.connections())
	for _, a := range e.areasOf(w) {
		switch {
		case w.crowded():
			return checkPattern(a.memory[:w.window()], job.Seed)
		case w.Op == FetchAdd:
			if sum := *numberIn(a.memory[landing : landing+w.Size]); sum != messages {
				return fmt.Errorf("the sum is %d after %d additions of 1", sum, messages)
			}
		case w.Shape == Connect:
			return checkPattern(a.memory[:w.Size], job.Seed)
		case w.Shape == PingPong:
			// The last octets of an RDMA Write carry its number.
			return checkPattern(a.memory[landing:landing+w.Size-numberSize], job.Seed)
		default:
			if err := checkPattern(a.memory[:min(each, uint64(w.slots()))*uint64(w.Size)], job.Seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// initiate is the active end of a sample over Weft.
func (e *weftEnd) initiate(ctx context.Context, job Job, ready Ready) (s Sample, err error) {
	crowd, err := e.dialCrowd(ctx, job, ready)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, crowd.free()) }()
	if job.Workload.Shape == Footprint {
		return Sample{Elapsed: job.Sample, Octets: crowd.octets}, nil
	}

	switch {
	case job.Workload.Shape == Connect:
		return e.connects(ctx, job, ready)
	case job.Workload.Shape == Register:
		return e.registers(job)
	case job.Workload.crowded():
		return e.sendAll(ctx, job, ready)
	}
	n := job.Workload.connections()
	if job.Workload.Shape == PingPong && n > 1 {
		return e.pingAll(ctx, job, ready)
	}
	samples, errs := make([]Sample, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		// One after the other: the target numbers them as they come.
		nc, derr := dialReady(ctx, job, ready)
		if derr != nil {
			errs[i] = derr
			break
		}
		all.Go(func() { samples[i], errs[i] = e.initiateOne(ctx, nc, job, i, ready.Remotes) })
	}
	all.Wait()
	for _, x := range samples {
		s.Messages += x.Messages
		s.Total += x.Total
		s.Elapsed = max(s.Elapsed, x.Elapsed)
		s.Trips = x.Trips
	}
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	if job.Workload.Op == Read || job.Workload.Shape == PingPong && job.Workload.Op != FetchAdd {
		err = e.verify(job, s.Total)
	}
	return s, err
}

// initiateOne is the active end of one of the connections.
func (e *weftEnd) initiateOne(ctx context.Context, nc *net.TCPConn, job Job, number int, remotes []Remote) (s Sample, err error) {
	l, err := e.newLink(job, number, remotes)
	if err != nil {
		return s, errors.Join(err, nc.Close())
	}
	defer func() { err = l.explain(errors.Join(err, l.free())) }()
	// Receives that the target's first message needs are posted first.
	var run func(context.Context) (Sample, error)
	switch {
	case job.Workload.Op == FetchAdd && job.Workload.Shape == Stream:
		run = l.fetchAdds
	case job.Workload.Op == FetchAdd:
		run = l.fetchAdd
	case job.Workload.Shape == PingPong:
		run, err = l.ping()
	default:
		run, err = l.stream()
	}
	if err != nil {
		return s, errors.Join(err, nc.Close())
	}
	if l.conn, err = cm.Connect(ctx, l.qp, nc, cm.Params{MPA: l.mpa(), TLS: job.Workload.clientTLS()}); err != nil {
		return s, err
	}
	if s, err = run(ctx); err != nil {
		return s, err
	}
	return s, l.conn.Shutdown(ctx)
}

// prepare is the passive end's beginning.
func (e *weftEnd) prepare(ctx context.Context, job Job) (ready Ready, do serve, err error) {
	ln, err := listen(ctx, job)
	if err != nil {
		return ready, nil, err
	}
	ready.Addr = ln.Addr().String()
	if job.Workload.Shape != Register {
		ready.Remotes = e.lay(job, job.Workload.Op == Read)
	}
	do = func(over <-chan struct{}) (s Served, err error) {
		defer ln.Close()
		if job.Workload.Shape == Register {
			<-over
			return s, nil
		}
		crowd, err := e.acceptCrowd(ctx, job, ln)
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, crowd.free()) }()
		if job.Workload.Shape == Footprint {
			return Served{Octets: crowd.octets}, crowd.wait(ctx)
		}
		return s, e.serve(ctx, ln, job)
	}
	return ready, do, nil
}

// serve is the passive end. It returns when the initiator has closed.
func (e *weftEnd) serve(ctx context.Context, ln *net.TCPListener, job Job) error {
	if job.Workload.Shape == Connect {
		return e.serveConnects(ctx, ln, job)
	}
	if job.Workload.Shape == PingPong && job.Workload.connections() > 1 {
		return e.pongAll(ctx, ln, job)
	}
	if job.Workload.crowded() {
		return e.receiveAll(ctx, ln, job)
	}
	errs := make([]error, job.Workload.connections())
	var all sync.WaitGroup
	for i := range errs {
		nc, err := accept(ctx, ln)
		if err != nil {
			errs[i] = err
			break
		}
		all.Go(func() { errs[i] = e.serveOne(ctx, nc, job, i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// serveOne is the passive end of one of the connections.
func (e *weftEnd) serveOne(ctx context.Context, nc *net.TCPConn, job Job, number int) (err error) {
	l, err := e.newLink(job, number, job.Remotes)
	if err != nil {
		return errors.Join(err, nc.Close())
	}
	defer func() { err = l.explain(errors.Join(err, l.free())) }()
	var run func(context.Context) error
	switch {
	case job.Workload.Op == FetchAdd:
		run = func(context.Context) error { return nil }
	case job.Workload.Shape == PingPong:
		run, err = l.pong()
	default:
		run, err = l.sink()
	}
	if err != nil {
		return errors.Join(err, nc.Close())
	}
	req, err := l.receive(ctx, nc)
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
