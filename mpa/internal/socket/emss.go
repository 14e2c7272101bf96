// This file decides when TCP is asked for its segment size.

package socket

import "syscall"

// TCP is asked again after so many octets of the stream, since the path changes, and
// since TCP learns about the peer's window, mostly in the beginning. A question costs as
// much as sending some KiB: each answer that has not changed doubles the interval.
const (
	AskSoonest = 64 << 10
	AskLatest  = 4 << 20
)

// An EMSS is the effective maximum segment size of a connection (RFC 5044 §4.5), as TCP
// said last. It is not safe for concurrent use.
type EMSS struct {
	octets int
	ask    func() (octets int, ok bool) // nil if there is nobody to ask
	asking schedule
}

// NewEMSS asks for the first time. Without an answer the size is otherwise, in octets.
func NewEMSS(ask func() (octets int, ok bool), otherwise int) EMSS {
	e := EMSS{octets: otherwise, ask: ask, asking: schedule{every: AskSoonest}}
	if ask != nil {
		e.refresh()
	}
	return e
}

// At returns the size, in octets, for what is sent from position pos of the stream on.
func (e *EMSS) At(pos uint64) int {
	if e.ask != nil && e.asking.due(pos) {
		e.asking.answered(pos, e.refresh())
	}
	return e.octets
}

// refresh asks, and reports whether the size has changed. A connection that is closed
// keeps its last one.
func (e *EMSS) refresh() (changed bool) {
	n, ok := e.ask()
	if !ok || n <= 0 || n == e.octets {
		return false
	}
	e.octets = n
	return true
}

// A schedule says at which positions of the stream TCP is asked.
type schedule struct {
	asked uint64 // position of the last question
	every uint64 // from there to the next, in octets
}

func (s *schedule) due(pos uint64) bool { return pos-s.asked >= s.every }

// answered notes the answer to a question at pos.
func (s *schedule) answered(pos uint64, changed bool) {
	s.asked, s.every = pos, min(2*s.every, AskLatest)
	if changed {
		s.every = AskSoonest
	}
}

// AskTCP returns a way to ask TCP for the segment size of rc, as NewEMSS takes it.
func AskTCP(rc syscall.RawConn) func() (octets int, ok bool) {
	var n int
	var err error
	look := func(fd uintptr) { n, err = maxSegment(fd) }
	return func() (int, bool) {
		closed := rc.Control(look)
		return n, closed == nil && err == nil
	}
}
