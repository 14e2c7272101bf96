package verbs

// This file is what an RNIC knows of a connection manager: how many listeners
// and connections it keeps on its behalf (RFC 5042 §6.4.1).

import (
	"io"

	"github.com/weft-rdma/weft/internal/listening"
)

func init() {
	listening.Of = func(rnic any) listening.Places { return places{rnic.(*RNIC)} }
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
