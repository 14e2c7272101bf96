// Connections over Weft that do nothing, for what they cost: in memory, and in
// the latency of one that works beside them.

package main

import (
	"context"
	"errors"
	"net"
	"runtime"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A crowd is the idle connections of one end: queue pairs with default options
// that share one completion queue. It belongs to one goroutine.
type crowd struct {
	pd     *verbs.PD
	cq     *verbs.CQ
	qps    []*verbs.QP
	octets uint64 // of memory that each took
}

// newCrowd makes room for n connections.
func (e *weftEnd) newCrowd(n int) (*crowd, error) {
	c := &crowd{pd: e.pd, qps: make([]*verbs.QP, 0, n)}
	if n == 0 {
		return c, nil
	}
	var err error
	c.cq, err = e.rnic.CreateCQ(verbs.CQConfig{Entries: n})
	return c, err
}

// gather has every connection made and measures the memory they take: heap
// objects and stacks, garbage collected before and after. What the system keeps
// for their sockets is not in it.
func (c *crowd) gather(n int, connect func(*verbs.QP) error) error {
	if n == 0 {
		return nil
	}
	before := memoryInUse()
	for range n {
		qp, err := c.pd.CreateQP(verbs.QPConfig{SendCQ: c.cq, RecvCQ: c.cq})
		if err != nil {
			return err
		}
		c.qps = append(c.qps, qp)
		if err := connect(qp); err != nil {
			return err
		}
	}
	if after := memoryInUse(); after > before {
		c.octets = (after - before) / uint64(n)
	}
	return nil
}

// memoryInUse is heap and stacks, after all garbage is gone.
func memoryInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools had kept
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// dialCrowd connects the idle connections of job.
func (e *weftEnd) dialCrowd(ctx context.Context, job Job, ready Ready) (*crowd, error) {
	c, err := e.newCrowd(job.Workload.Idle)
	if err != nil {
		return nil, err
	}
	err = c.gather(job.Workload.Idle, func(qp *verbs.QP) error {
		nc, err := dialReady(ctx, job, ready)
		if err != nil {
			return err
		}
		_, err = cm.Connect(ctx, qp, nc, cm.Params{MPA: idleMPA(job)})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

// acceptCrowd takes the idle connections of job.
func (e *weftEnd) acceptCrowd(ctx context.Context, job Job, ln *net.TCPListener) (*crowd, error) {
	c, err := e.newCrowd(job.Workload.Idle)
	if err != nil {
		return nil, err
	}
	err = c.gather(job.Workload.Idle, func(qp *verbs.QP) error {
		nc, err := accept(ctx, ln)
		if err != nil {
			return err
		}
		req, err := cm.Receive(ctx, nc, idleMPA(job))
		if err != nil {
			return err
		}
		_, err = req.Accept(ctx, qp, cm.Params{MPA: idleMPA(job)})
		return err
	})
	if err != nil {
		return nil, errors.Join(err, c.free())
	}
	return c, nil
}

// idleMPA is how an idle connection is set up: by default, but for the CRC.
func idleMPA(job Job) mpa.Config { return mpa.Config{NoCRC: !job.Workload.CRC} }

// wait returns when the other end has closed the connections.
func (c *crowd) wait(ctx context.Context) error {
	for _, qp := range c.qps {
		if _, err := qp.WaitState(ctx, verbs.Idle, verbs.Error); err != nil {
			return err
		}
	}
	return nil
}

// free ends the connections.
func (c *crowd) free() error {
	var err error
	for _, qp := range c.qps {
		err = errors.Join(err, qp.Destroy())
	}
	if c.cq != nil {
		err = errors.Join(err, c.cq.Destroy())
	}
	return err
}
