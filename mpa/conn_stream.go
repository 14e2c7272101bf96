package mpa

// The transport of any net.Conn: its writes wait, so nothing that it writes may
// be memory that can be revoked.

import (
	"errors"
	"io"
	"net"
)

type stream struct {
	nc    net.Conn
	stats *counters
}

func (s *stream) tries() bool  { return false }
func (s *stream) places() bool { return false }
func (s *stream) close()       {}

func (s *stream) flush(b *batch, g Guard, wait bool) error {
	if !wait {
		return nil
	}
	if g != nil {
		if !g.Acquire() {
			return ErrRevoked
		}
		g.Release()
	}
	for !b.empty() {
		p := b.pieces[b.first]
		n, err := s.nc.Write(p)
		s.stats.writes.Add(1)
		short := n < len(p)
		b.wrote(n)
		if err != nil {
			return err
		}
		if short {
			return io.ErrShortWrite
		}
	}
	return nil
}

func (s *stream) read(p []byte) (int, error) {
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

func (s *stream) readWindows(Sink, int, int, []byte) (int, error) {
	return 0, errors.ErrUnsupported
}
