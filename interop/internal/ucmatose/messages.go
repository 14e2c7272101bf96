// Package ucmatose is a peer, on Weft's Verbs, for ucmatose(1) of rdma-core:
// over each of several connections the server sends a number of messages, then
// the client sends as many back, then the server disconnects.
//
// The server speaks first. RFC 5044 §7.1.2 forbids that to a Responder until
// the Initiator has sent, so our server needs a client that uses the
// peer-to-peer set-up of RFC 6581, whose RTR opens the way.
package ucmatose

import (
	"context"
	"fmt"

	"github.com/weft-rdma/weft/interop/internal/node"
	"github.com/weft-rdma/weft/verbs"
)

// Config is what both programs must agree on: ucmatose's -c, -C and -S.
type Config struct {
	Connections int
	Count       int // of messages each way, on each connection
	Size        int // octets a message
}

// An endpoint is one side of one connection.
type endpoint struct {
	*node.Node
	cfg     Config
	message *verbs.MR
}

// newEndpoint readies a queue pair with all its receives posted. As in the
// original, all messages of a connection share one buffer.
func newEndpoint(rnic *verbs.RNIC, cfg Config) (*endpoint, error) {
	n, err := node.New(rnic, verbs.QPConfig{
		SendDepth: cfg.Count, RecvDepth: cfg.Count, SendSGEs: 1, RecvSGEs: 1, IRD: 1, ORD: 1,
	})
	if err != nil {
		return nil, err
	}
	e := &endpoint{Node: n, cfg: cfg}
	message := make([]byte, cfg.Size)
	for i := range message {
		message[i] = byte(i)
	}
	if e.message, err = n.Register(message, verbs.LocalRead|verbs.LocalWrite); err == nil {
		for i := 0; i < cfg.Count && err == nil; i++ {
			err = n.QP.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: e.sgl()})
		}
	}
	if err != nil {
		n.Release()
		return nil, err
	}
	return e, nil
}

func (e *endpoint) sgl() []verbs.SGE { return []verbs.SGE{e.message.SGE(0, e.cfg.Size)} }

// send sends all messages and waits until they are sent.
func (e *endpoint) send(ctx context.Context) error {
	for i := range e.cfg.Count {
		wr := verbs.SendWR{ID: uint64(i), Op: verbs.OpSend, Flags: verbs.Signaled, SGL: e.sgl()}
		if err := e.QP.PostSend(wr); err != nil {
			return fmt.Errorf("posting message %d: %w", i+1, err)
		}
	}
	for i := range e.cfg.Count {
		if err := inOrder(e.Sent(ctx))(i); err != nil {
			return fmt.Errorf("sending message %d of %d: %w", i+1, e.cfg.Count, err)
		}
	}
	return nil
}

// receive waits for all messages of the peer.
func (e *endpoint) receive(ctx context.Context) error {
	for i := range e.cfg.Count {
		wc, err := e.Received(ctx)
		if err = inOrder(wc, err)(i); err != nil {
			return fmt.Errorf("receiving message %d of %d: %w", i+1, e.cfg.Count, err)
		}
		if int(wc.Bytes) != e.cfg.Size {
			return fmt.Errorf("message %d has %d octets, expected %d", i+1, wc.Bytes, e.cfg.Size)
		}
	}
	return nil
}

// inOrder holds a completion to the number of the request it must be of.
func inOrder(wc verbs.WC, err error) func(want int) error {
	return func(want int) error {
		if err == nil && wc.ID != uint64(want) {
			err = fmt.Errorf("the completion is of request %d", wc.ID+1)
		}
		return err
	}
}
