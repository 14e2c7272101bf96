// One connection over Weft: its queue pair, completion queue and memory.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A link is one queue pair and connection of a sample. Its methods belong to
// one goroutine.
type link struct {
	area
	job    Job
	remote verbs.Remote
	qp     *verbs.QP
	cq     *verbs.CQ
	shared bool // cq is of other links, too
	conn   *cm.Conn
	wcs    [64]verbs.WC
	ready  []verbs.WC // polled and not looked at yet
}

// spinFor is how long a polling queue pair's reader polls before it parks:
// longer than any ping-pong's turn on loopback.
const spinFor = 200 * time.Microsecond

// readDepth is the number of RDMA Reads in flight, IRD and ORD: as many as an RNIC of
// Weft's allows a queue pair by default.
const readDepth = 256

// newLink makes the queue pair for the connection of job with that number, and a
// completion queue for it.
func (e *weftEnd) newLink(job Job, number int, remotes []Remote) (*link, error) {
	p := paceOf(job.Workload)
	cfg := verbs.CQConfig{Entries: p.sends + p.receives}
	if job.Workload.Polling && !job.Workload.Loop {
		cfg.Spin = spinFor
	}
	cq, err := e.rnic.CreateCQ(cfg)
	if err != nil {
		return nil, err
	}
	l, err := e.newLinkAt(cq, job, number, remotes)
	if err != nil {
		return nil, errors.Join(err, cq.Destroy())
	}
	return l, nil
}

// newLinkAt makes the queue pair for the connection of job with that number, at cq.
func (e *weftEnd) newLinkAt(cq *verbs.CQ, job Job, number int, remotes []Remote) (*link, error) {
	if number >= len(remotes) {
		return nil, fmt.Errorf("the other end has advertised no memory for connection %d", number)
	}
	r := remotes[number]
	l := &link{area: e.areas[number], job: job, cq: cq, remote: verbs.Remote{STag: memory.STag(r.STag), TO: r.TO}}
	p := paceOf(job.Workload)
	depth := readDepth
	if job.Workload.Op == FetchAdd {
		depth = additions
	}
	qp := verbs.QPConfig{
		SendCQ: cq, RecvCQ: cq,
		SendDepth: p.sends, RecvDepth: p.receives, SendSGEs: 1, RecvSGEs: 1,
		IRD: depth, ORD: depth, Extensions: job.Workload.Op == FetchAdd,
	}
	var err error
	l.qp, err = e.pd.CreateQP(qp)
	return l, err
}

// free ends the queue pair, gracefully or not, and the completion queue.
func (l *link) free() error {
	if l.shared {
		return l.qp.Destroy()
	}
	return errors.Join(l.qp.Destroy(), l.cq.Destroy())
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
	wc, err := l.next(ctx)
	if err == nil && wc.Status != verbs.Success {
		return nil, wc.Err()
	}
	return wc, err
}

// next is completion, of requests that have failed, too.
func (l *link) next(ctx context.Context) (*verbs.WC, error) {
	for len(l.ready) == 0 {
		n := l.cq.Poll(l.wcs[:])
		if n == 0 && l.job.Workload.Loop {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			runtime.Gosched()
			continue
		}
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
	return wc, nil
}

// mpa is how this end sets up its half of the connection: with CRC unless the
// workload is without, which takes both ends.
func (l *link) mpa() mpa.Config {
	return mpa.Config{NoCRC: !l.job.Workload.CRC}
}

// receive waits for the request on a connection, which is encrypted first if the workload
// says so.
func (l *link) receive(ctx context.Context, nc net.Conn) (*cm.Request, error) {
	cfg, err := l.job.Workload.serverTLS()
	if err != nil {
		return nil, errors.Join(err, nc.Close())
	}
	if cfg != nil {
		if nc, err = cm.AcceptTLS(ctx, nc, cfg); err != nil {
			return nil, err
		}
	}
	return cm.Receive(ctx, nc, l.mpa())
}
