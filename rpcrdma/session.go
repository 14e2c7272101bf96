// A connection as handlers see it.

package rpcrdma

import "sync"

// A session is a connection to handlers: its address is the identity of all its
// calls. It is open until no call of the connection is in a handler any more.
type session struct {
	mu    sync.Mutex
	ended bool
	ends  []func()
}

func newSession() *session { return new(session) }

// onEnd is Request.SessionEnd.
func (s *session) onEnd(f func()) {
	s.mu.Lock()
	if !s.ended {
		s.ends = append(s.ends, f)
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	f()
}

// close ends the session.
func (s *session) close() {
	s.mu.Lock()
	ends := s.ends
	s.ended, s.ends = true, nil
	s.mu.Unlock()
	for _, f := range ends {
		f()
	}
}
