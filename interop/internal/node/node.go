// Package node bundles what a simple peer needs of the Verbs: a protection
// domain, a queue pair with a completion queue for each direction, and memory.
package node

import (
	"context"
	"fmt"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// A Node is one side of a connection. It belongs to one goroutine.
type Node struct {
	QP *verbs.QP

	pd     *verbs.PD
	sendCQ *verbs.CQ
	recvCQ *verbs.CQ
	mrs    []*verbs.MR
}

// New makes a node with the queue pair that cfg describes; its completion
// queues are the node's.
func New(rnic *verbs.RNIC, cfg verbs.QPConfig) (n *Node, err error) {
	n = &Node{}
	defer func() {
		if err != nil {
			n.Release()
		}
	}()
	if n.pd, err = rnic.AllocPD(); err != nil {
		return nil, err
	}
	if n.sendCQ, err = rnic.CreateCQ(verbs.CQConfig{Entries: cfg.SendDepth}); err != nil {
		return nil, err
	}
	if n.recvCQ, err = rnic.CreateCQ(verbs.CQConfig{Entries: cfg.RecvDepth}); err != nil {
		return nil, err
	}
	cfg.SendCQ, cfg.RecvCQ = n.sendCQ, n.recvCQ
	if n.QP, err = n.pd.CreateQP(cfg); err != nil {
		return nil, err
	}
	return n, nil
}

// Register registers buf until Release.
func (n *Node) Register(buf []byte, access memory.Access) (*verbs.MR, error) {
	mr, err := n.pd.Register(buf, access)
	if err == nil {
		n.mrs = append(n.mrs, mr)
	}
	return mr, err
}

// Do posts one work request and waits until it has completed.
func (n *Node) Do(ctx context.Context, wr verbs.SendWR) error {
	wr.Flags |= verbs.Signaled
	if err := n.QP.PostSend(wr); err != nil {
		return fmt.Errorf("posting a %v: %w", wr.Op, err)
	}
	_, err := n.Sent(ctx)
	return err
}

// Sent returns the next completion of the send queue.
func (n *Node) Sent(ctx context.Context) (verbs.WC, error) { return n.next(ctx, n.sendCQ) }

// Received returns the next completion of the receive queue.
func (n *Node) Received(ctx context.Context) (verbs.WC, error) { return n.next(ctx, n.recvCQ) }

func (n *Node) next(ctx context.Context, cq *verbs.CQ) (verbs.WC, error) {
	var wc [1]verbs.WC
	for cq.Poll(wc[:]) == 0 {
		if err := cq.Wait(ctx); err != nil {
			return wc[0], fmt.Errorf("waiting for a completion: %w (connection: %v)", err, n.QP.Err())
		}
	}
	return wc[0], wc[0].Err()
}

// Release gives everything back; what was never made is passed over.
func (n *Node) Release() {
	if n.QP != nil {
		n.QP.Destroy()
	}
	for _, cq := range []*verbs.CQ{n.sendCQ, n.recvCQ} {
		if cq != nil {
			cq.Destroy()
		}
	}
	for _, mr := range n.mrs {
		mr.Deallocate()
	}
	if n.pd != nil {
		n.pd.Dealloc()
	}
}
