package mpa

// The effective maximum segment size of the connection, as TCP reports it.

import (
	"net"
	"syscall"

	"github.com/weft-rdma/weft/mpa/internal/socket"
)

// TCP is asked again after so many octets of the stream, since the path changes, and
// since TCP learns about the peer's window, mostly in the beginning. A question costs as
// much as sending some KiB: each answer that has not changed doubles the interval.
const (
	emssSoonest = 64 << 10
	emssLatest  = 4 << 20
)

// An emss owns the way to ask. It belongs to the sending half.
type emss struct {
	octets int    // the value, never 0
	asked  uint64 // stream position of the last question
	every  uint64 // from there to the next, in octets
	rc     syscall.RawConn
	ask    func(fd uintptr)
}

func (e *emss) init(tcp *net.TCPConn) {
	e.octets, e.every = defaultEMSS, emssSoonest
	if tcp == nil {
		return
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	e.rc = rc
	e.ask = func(fd uintptr) {
		if n, err := socket.MaxSegment(fd); err == nil && n > 0 {
			e.octets = n
		}
	}
	e.now()
}

// refresh asks again if the stream, now at pos, has gone on far enough.
func (e *emss) refresh(pos uint64) {
	if e.rc == nil || pos-e.asked < e.every {
		return
	}
	before := e.octets
	e.now()
	e.asked = pos
	if e.every = min(2*e.every, emssLatest); e.octets != before {
		e.every = emssSoonest
	}
}

// now asks. A connection that is closed keeps its last value.
func (e *emss) now() { _ = e.rc.Control(e.ask) }
