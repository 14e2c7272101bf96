package perf

import (
	"fmt"
	"io"
	"net"
	"time"
)

// A tcpStream is one end of the plain TCP connection.
type tcpStream struct {
	nc  *net.TCPConn
	buf []byte // for what is written and what is read
}

// bulk is how much is read at a time, in octets: large, so that the baseline
// is a good one.
const bulk = 1 << 20

// requestLen is what asks for an answer when the latency of a read is
// compared: as much as a short request of any protocol has.
const requestLen = 16

func newTCPStream(nc *net.TCPConn, maxSize int) *tcpStream {
	return &tcpStream{nc, make([]byte, max(maxSize, bulk))}
}

// write writes n messages of size octets, a call each.
func (s *tcpStream) write(n, size int) error {
	for range n {
		if _, err := s.nc.Write(s.buf[:size]); err != nil {
			return err
		}
	}
	return nil
}

// read reads n messages of size octets, as many as come at a time.
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

// transfer is the driver's part of a bandwidth run; a Read's octets come to it,
// all others go.
func (s *tcpStream) transfer(r *run) (time.Duration, error) {
	start := time.Now()
	var err error
	if r.Op == Read {
		if err = s.write(1, 1); err == nil {
			err = s.read(r.N, r.Size)
		}
	} else {
		if err = s.write(r.N, r.Size); err == nil {
			err = s.read(1, 1)
		}
	}
	return time.Since(start), err
}

// answer is the peer's part of it.
func (s *tcpStream) answer(r *run) error {
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

// askLen is how many octets the driver sends in each round trip.
func askLen(r *run) int {
	if r.Op.fetches() {
		return requestLen
	}
	return r.Size
}

// pingpong is the driver's part of a latency run: it appends the round trips
// to trips.
func (s *tcpStream) pingpong(r *run, trips []time.Duration) ([]time.Duration, error) {
	for range r.N {
		start := time.Now()
		if err := s.write(1, askLen(r)); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(s.nc, s.buf[:r.Size]); err != nil {
			return nil, err
		}
		trips = append(trips, time.Since(start))
	}
	return trips, nil
}

// pong is the peer's part of it.
func (s *tcpStream) pong(r *run) error {
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
