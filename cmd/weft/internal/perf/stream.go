// This file is plain TCP, the baseline.

package perf

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"
)

// A tcpStream is one end of a plain TCP connection.
type tcpStream struct {
	nc  *net.TCPConn
	buf []byte // for what is written and what is read
}

// bulk is how much is read at a time, in bytes: large, so that the baseline
// is a good one.
const bulk = 1 << 20

// requestLen is the length of the request when the latency of a read is compared: that
// of a short request of any protocol.
const requestLen = 16

func newTCPStream(nc *net.TCPConn, maxSize int) *tcpStream {
	return &tcpStream{nc, make([]byte, max(maxSize, bulk))}
}

// write writes n messages of size bytes, a call each.
func (s *tcpStream) write(n, size int) error {
	for range n {
		if _, err := s.nc.Write(s.buf[:size]); err != nil {
			return err
		}
	}
	return nil
}

// read reads n messages of size bytes, as many as come at a time.
func (s *tcpStream) read(n, size int) error {
	for left := int64(n) * int64(size); left > 0; {
		got, err := s.nc.Read(s.buf[:min(left, int64(len(s.buf)))])
		if err != nil {
			return err
		}
		left -= int64(got)
	}
	return nil
}

// transfer is the driver's part of a bandwidth run: it receives for a Read and sends
// otherwise.
func (s *tcpStream) transfer(ctx context.Context, r *run) error {
	defer guard(ctx, s.nc)()
	if r.Op == Read {
		if err := s.write(1, 1); err != nil {
			return err
		}
		return s.read(r.N, r.Size)
	}
	if err := s.write(r.N, r.Size); err != nil {
		return err
	}
	return s.read(1, 1)
}

// answer is the peer's part of it.
func (s *tcpStream) answer(ctx context.Context, r *run) error {
	defer guard(ctx, s.nc)()
	if r.Op == Read {
		if err := s.read(1, 1); err != nil {
			return err
		}
		return s.write(r.N, r.Size)
	}
	if err := s.read(r.N, r.Size); err != nil {
		return err
	}
	return s.write(1, 1)
}

// askLen is how many bytes the driver sends in each round trip.
func askLen(r *run) int {
	if r.Op.fetches() {
		return requestLen
	}
	return r.Size
}

// pingpong is the driver's part of a latency run. Its round trips go to trips,
// which has a place for each.
func (s *tcpStream) pingpong(ctx context.Context, r *run, trips []time.Duration) error {
	defer guard(ctx, s.nc)()
	for k := range r.N {
		start := time.Now()
		if err := s.write(1, askLen(r)); err != nil {
			return err
		}
		if _, err := io.ReadFull(s.nc, s.buf[:r.Size]); err != nil {
			return err
		}
		trips[k] = time.Since(start)
	}
	return nil
}

// pong is the peer's part of it.
func (s *tcpStream) pong(ctx context.Context, r *run) error {
	defer guard(ctx, s.nc)()
	for k := range r.N {
		if _, err := io.ReadFull(s.nc, s.buf[:askLen(r)]); err != nil {
			return fmt.Errorf("round trip %d: %w", k, err)
		}
		if err := s.write(1, r.Size); err != nil {
			return fmt.Errorf("round trip %d: %w", k, err)
		}
	}
	return nil
}
