// One direction of a connection in memory: a bounded queue of octets with an end, and
// the faults ordered for it.
//
// Locking: one mutex guards all of a stream. Every change wakes all waiters, by the
// condition variable.

package iwarptest

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// A stream carries octets from one writer to one reader.
type stream struct {
	mu   sync.Mutex
	cond sync.Cond // of any change

	// The queue, oldest first. used is the sum of the lengths.
	queue []parcel
	used  int
	limit int

	written uint64 // octets taken from the writer, ever
	end     error  // what the writer gets from now on; nil while it may write
	closed  bool   // the reader has closed its end
	lost    bool   // the writer has reset the connection

	delay   time.Duration
	held    bool
	faults  map[uint64]byte // masks by octet number
	cut     bool
	cutAt   uint64 // if cut, the number of the first octet that does not arrive
	cutWith error  // if cut, what the reader gets in its place

	sizes func() int // returns the limit of the next read; nil is none

	readLimit, writeLimit deadline
}

// A parcel is what one write left, or the end of the stream.
type parcel struct {
	data  []byte
	ready time.Time // not to be read before
	err   error     // the end: io.EOF or syscall.ECONNRESET; data is nil
}

// A deadline is a time, and the timer that wakes the waiting goroutines then.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

func newStream(limit int) *stream {
	s := &stream{limit: limit, faults: make(map[uint64]byte)}
	s.cond.L = &s.mu
	return s
}

// do runs f, which changes the stream.
func (s *stream) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	s.cond.Broadcast()
}

func (s *stream) setDeadline(d *deadline, at time.Time) {
	s.do(func() {
		if d.timer != nil {
			d.timer.Stop()
			d.timer = nil
		}
		d.at = at
		if wait := time.Until(at); !at.IsZero() && wait > 0 {
			d.timer = s.wakeIn(wait)
		}
	})
}

// wakeIn wakes all waiting goroutines after a time.
func (s *stream) wakeIn(wait time.Duration) *time.Timer {
	return time.AfterFunc(wait, func() { s.do(func() {}) })
}

// read waits for octets, the end, or the deadline.
func (s *stream) read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.closed:
			return 0, net.ErrClosed
		case s.lost:
			return 0, syscall.ECONNRESET
		case s.readLimit.passed():
			return 0, os.ErrDeadlineExceeded
		case len(p) == 0:
			return 0, nil
		}
		if len(s.queue) > 0 && !s.held {
			first := &s.queue[0]
			wait := time.Until(first.ready)
			if wait <= 0 {
				if first.err != nil {
					return 0, first.err // and it stays for the next
				}
				return s.dequeue(p), nil
			}
			timer := s.wakeIn(wait)
			s.cond.Wait()
			timer.Stop()
			continue
		}
		s.cond.Wait()
	}
}

// dequeue moves octets that are ready to p, from as many parcels as it takes.
func (s *stream) dequeue(p []byte) (n int) {
	if s.sizes != nil {
		p = p[:min(len(p), max(1, s.sizes()))]
	}
	now := time.Now()
	for len(s.queue) > 0 && n < len(p) {
		first := &s.queue[0]
		if first.err != nil || now.Before(first.ready) {
			break
		}
		k := copy(p[n:], first.data)
		n += k
		s.used -= k
		if first.data = first.data[k:]; len(first.data) == 0 {
			s.queue = s.queue[1:]
		}
	}
	s.cond.Broadcast() // there is room
	return n
}

// write waits until all of p is queued, for the end, or for the deadline.
func (s *stream) write(p []byte) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		switch {
		case s.end != nil:
			return n, s.end
		case s.writeLimit.passed():
			return n, os.ErrDeadlineExceeded
		case s.closed:
			return n, syscall.ECONNRESET
		case n == len(p):
			return n, nil
		}
		k := min(s.limit-s.used, len(p)-n)
		if k == 0 {
			s.cond.Wait()
			continue
		}
		s.enqueue(p[n : n+k])
		n += k
		s.cond.Broadcast()
		if n == len(p) {
			return n, nil
		}
	}
}

// enqueue queues the octets of p, with the faults that were ordered.
func (s *stream) enqueue(p []byte) {
	data := append([]byte(nil), p...)
	for i := range data {
		if len(s.faults) == 0 {
			break
		}
		data[i] ^= s.faults[s.written+uint64(i)]
	}
	from := s.written
	s.written += uint64(len(p))
	if s.cut && s.written >= s.cutAt {
		if from < s.cutAt {
			s.add(parcel{data: data[:s.cutAt-from]})
			s.finish(s.cutWith)
		}
		return
	}
	s.add(parcel{data: data})
}

// add queues a parcel, unless it is empty.
func (s *stream) add(p parcel) {
	if len(p.data) == 0 && p.err == nil {
		return
	}
	if s.delay > 0 {
		p.ready = time.Now().Add(s.delay)
	}
	s.used += len(p.data)
	s.queue = append(s.queue, p)
}

// finish queues the end, unless one is queued already.
func (s *stream) finish(err error) {
	if n := len(s.queue); n == 0 || s.queue[n-1].err == nil {
		s.add(parcel{err: err})
	}
}

// cutOff replaces octet n, and all after it, by err.
func (s *stream) cutOff(n uint64, err error) {
	s.cut, s.cutAt, s.cutWith = true, n, err
	if s.written >= n {
		s.finish(err)
	}
}

// closeWrite ends the stream. The writer gets err from now on, the reader io.EOF after
// what was written.
func (s *stream) closeWrite(err error) {
	s.do(func() {
		if s.end == nil || err == net.ErrClosed {
			s.end = err
		}
		s.finish(io.EOF)
	})
}

// reset ends the stream for both sides at once; what is queued is lost.
func (s *stream) reset() {
	s.do(func() {
		s.queue, s.used = nil, 0
		s.lost = true
		if s.end == nil {
			s.end = syscall.ECONNRESET
		}
	})
}
