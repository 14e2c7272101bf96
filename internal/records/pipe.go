// This file is the byte stream below: a bounded buffer in memory.

package records

import "sync"

// A pipe carries octets from one writer to one reader through a buffer of bounded
// size.
type pipe struct {
	mu    sync.Mutex
	cond  sync.Cond // something below changed
	buf   []byte    // written and not read
	limit int

	fin    bool // nothing follows what is in buf
	reset  bool // neither end can use it any more
	closed bool // its reader takes no more
}

func newPipe(limit int) *pipe {
	p := &pipe{limit: limit}
	p.cond.L = &p.mu
	return p
}

// do changes the pipe, and wakes the goroutines that wait for a change.
func (p *pipe) do(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.cond.Broadcast()
}

// broken is the error that a write returns, or nil; needs mu.
func (p *pipe) broken() error {
	switch {
	case p.reset:
		return errReset
	case p.closed:
		return errGone
	case p.fin:
		return errEnded
	}
	return nil
}

// write takes as much of b as there is room for.
func (p *pipe) write(b []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.broken(); err != nil {
		return 0, err
	}
	n = min(len(b), p.limit-len(p.buf))
	p.buf = append(p.buf, b[:n]...)
	p.cond.Broadcast()
	return n, nil
}

// waitRoom waits until write takes something or fails.
func (p *pipe) waitRoom() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == p.limit && p.broken() == nil {
		p.cond.Wait()
	}
}

// read appends to b what is there, after waiting for it; fin says that nothing
// follows.
func (p *pipe) read(b []byte) (_ []byte, fin bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf) == 0 && !p.fin && !p.reset && !p.closed {
		p.cond.Wait()
	}
	switch {
	case p.reset:
		return b, false, errReset
	case p.closed:
		return b, false, errClosed
	}
	b = append(b, p.buf...)
	p.buf, fin = p.buf[:0], p.fin
	p.cond.Broadcast()
	return b, fin, nil
}

// empty reports that read would wait.
func (p *pipe) empty() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.buf) == 0
}
