package mpa

// The effective maximum segment size of the connection, as TCP tells it.

import (
	"net"
	"syscall"
)

// emssEvery is after how many octets of the stream TCP is asked again: the
// path, and TCP's knowledge of the peer's window, change.
const emssEvery = 256 << 10

// An emss owns the way to ask. It belongs to the sending half.
type emss struct {
	octets int    // the value, never 0
	asked  uint64 // stream position of the last question
	rc     syscall.RawConn
	ask    func(fd uintptr)
}

func (e *emss) init(tcp *net.TCPConn) {
	e.octets = defaultEMSS
	if tcp == nil {
		return
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	e.rc = rc
	e.ask = func(fd uintptr) {
		if n, err := maxSegment(fd); err == nil && n > 0 {
			e.octets = n
		}
	}
	e.now()
}

// refresh asks again if the stream, now at pos, has gone on far enough.
func (e *emss) refresh(pos uint64) {
	if e.rc != nil && pos-e.asked >= emssEvery {
		e.asked = pos
		e.now()
	}
}

// now asks. A connection that is closed keeps its last value.
func (e *emss) now() { _ = e.rc.Control(e.ask) }
