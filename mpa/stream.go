// The transport of any net.Conn: its writes wait, so nothing that it writes may
// be memory that can be revoked.

package mpa

import (
	"io"
	"net"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
)

type stream struct {
	nc    net.Conn
	stats *counters

	first [512]byte // what the first octets after a pause are read into
	more  bool      // the last read got as much as it could

	writing chan struct{} // capacity 1: a lock that can be waited for with a time limit
	within  bool          // an FPDU has left in part; needs the lock
	over    bool          // nothing may follow what has left; needs the lock
}

func (s *stream) close() {}

func (s *stream) flush(b *fpdu.Batch, g Guard, wait bool) error {
	if !wait {
		return nil
	}
	if g != nil {
		if !g.Acquire() {
			return ErrRevoked
		}
		g.Release()
	}
	// Flush returns when a frame has left, so that it can be accounted for.
	for written := b.Written(); !b.Empty() && b.Written() <= written; {
		if err := s.write(b); err != nil {
			return err
		}
	}
	return nil
}

// write writes what comes next of the batch.
func (s *stream) write(b *fpdu.Batch) error {
	s.writing <- struct{}{}
	defer func() { <-s.writing }()
	if s.over {
		return net.ErrClosed
	}
	p := b.Pending()[0]
	p = p[:min(len(p), b.UpTo(streamWrite))]
	n, err := s.nc.Write(p)
	s.stats.writes.Add(1)
	b.Wrote(n)
	s.within = b.Within()
	if err == nil && n < len(p) {
		return io.ErrShortWrite
	}
	return err
}

// cut makes the connection end within an FPDU. A write that is under way is ended.
func (s *stream) cut() {
	if s.nc.SetWriteDeadline(past) != nil {
		return // it is closed; or there is no way not to wait for the peer
	}
	end := time.Now().Add(cutTimeout)
	late := time.NewTimer(cutTimeout)
	defer late.Stop()
	select {
	case s.writing <- struct{}{}:
	case <-late.C:
		return
	}
	defer func() { <-s.writing }()
	if !s.within && s.nc.SetWriteDeadline(end) == nil {
		cut(s.nc)
	}
	s.over = true
}

// streamWrite is how much is written at a time, in octets, rounded up to whole
// frames.
const streamWrite = 64 << 10

func (s *stream) read(a *readAhead, _ bool) (int, error) {
	if s.more || a.start < a.end {
		p := a.room()
		n, err := s.readTo(p)
		s.more = n == len(p)
		return n, err
	}
	// The wait may be long: no buffer is kept for it.
	a.rest()
	n, err := s.readTo(s.first[:])
	if n == 0 {
		return 0, err
	}
	s.more = n == len(s.first)
	return copy(a.room(), s.first[:n]), err
}

// readTo waits for octets, at least one.
func (s *stream) readTo(p []byte) (int, error) {
	for {
		n, err := s.nc.Read(p)
		if n > 0 {
			s.stats.reads.Add(1)
			return n, nil
		}
		if err != nil {
			return 0, err
		}
	}
}
