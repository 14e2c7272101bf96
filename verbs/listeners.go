package verbs

// This file is what an RNIC knows of a connection manager: how many listeners
// and connections it keeps on its behalf (RFC 5042 §6.4.1).

import "io"

// AttachListener makes a listener part of the RNIC: it counts against
// Limits.Listeners until DetachListener is called, and is closed when the RNIC
// is. l is a pointer. It is for connection managers; package cm does it. The
// results besides success are ErrRNIC and ErrResources.
func (r *RNIC) AttachListener(l io.Closer) error {
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

// DetachListener says that a listener has been closed.
func (r *RNIC) DetachListener(l io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.listeners, l)
}

// AdmitConnection counts a connection that nobody has accepted yet against
// Limits.PendingConnections, until DismissConnection is called once for it. It
// is for connection managers; package cm does it. The results besides success
// are ErrRNIC and ErrResources.
func (r *RNIC) AdmitConnection() error {
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

// DismissConnection says that a connection does not wait any more.
func (r *RNIC) DismissConnection() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pending--
}
