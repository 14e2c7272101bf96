// This file is the part of an RNIC and its queue pairs that connection managers use: it
// bounds listeners and connections (RFC 5042 §6.4.1), and brings queue pairs into RTS.

package verbs

import (
	"io"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/listening"
)

func init() {
	listening.Of = func(rnic any) listening.Places { return places{rnic.(*RNIC)} }
	listening.OfQP = func(qp any) listening.Pair { return pair{qp.(*QP)} }
}

// places are the RNIC as a connection manager sees it.
type places struct{ *RNIC }

func (r places) AttachListener(l io.Closer) error {
	const verb = "listen"
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive(verb); err != nil {
		return err
	}
	if len(r.listeners) >= r.limits.Listeners {
		return r.limited(verb, ErrResources, "Listeners", "the limit is %d listeners", r.limits.Listeners)
	}
	r.listeners[l] = struct{}{}
	return nil
}

func (r places) DetachListener(l io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.listeners, l)
}

func (r places) AdmitConnection() error {
	const verb = "take a connection"
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.alive(verb); err != nil {
		return err
	}
	if r.pending >= r.limits.PendingConnections {
		return r.limited(verb, ErrResources, "PendingConnections", "the limit is %d connections that wait to be accepted", r.limits.PendingConnections)
	}
	r.pending++
	return nil
}

func (r places) DismissConnection() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending--
}

// pair is a queue pair as a connection manager sees it.
type pair struct{ qp *QP }

func (p pair) Establish(llp ddp.LLP, terms any) error { return p.qp.establish(llp, terms.(Terms)) }
func (p pair) Ready() <-chan struct{}                 { return p.qp.ready() }

// establish moves an Idle queue pair to RTS over an LLP stream on whose terms start-up has
// just agreed. Unlike Modify it does not check that the stream is established. The queue
// pair owns llp from then on, unless establish fails.
func (q *QP) establish(llp ddp.LLP, terms Terms) error {
	_, err := q.modify(RTS, &QPModify{LLP: llp, Terms: &terms, proven: true})
	return err
}
