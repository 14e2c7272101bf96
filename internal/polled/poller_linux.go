// This file is the poller: one goroutine that waits for the events of all connections.

package polled

import (
	"math"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/panics"
)

// A poller waits for the events of all connections.
type poller struct {
	begin sync.Once
	err   error
	epoll int

	mu    sync.Mutex
	conns map[int32]*Conn // by what their events carry
	last  int32

	timer    int                // ends leases; -1 if there is none
	leases   sync.Mutex         // guards leased; taken within Conn.mu
	leased   map[*Conn]struct{} // connections that the timer looks after
	followed []*Conn            // of expire, kept for its memory

	contain func(receive func() bool) bool // see Start; nil calls it
}

// thePoller is the poller of the program.
var thePoller poller

// timerID is what the timer's events carry.
const timerID = -1

// Start is for a program that is not Go's, before the first New, which otherwise starts
// the poller. It calls keep with each descriptor that the poller keeps from then on.
// Functions given to [Conn.ReceiveWith] are called by contain, which may recover from their
// panics: if it then returns false, the read that waits is woken.
func Start(keep func(fd int), contain func(receive func() bool) bool) error {
	p := &thePoller
	return p.start(func() {
		p.contain = contain
		keep(p.epoll)
		if p.timer >= 0 {
			keep(p.timer)
		}
	})
}

// call calls a function of ReceiveWith.
func (p *poller) call(f func() bool) bool {
	if p.contain != nil {
		return p.contain(f)
	}
	return f()
}

// start makes the poller's descriptors, calls ready, and starts the poller's goroutine.
func (p *poller) start(ready func()) error {
	p.begin.Do(func() {
		p.conns, p.leased = make(map[int32]*Conn), make(map[*Conn]struct{})
		var err error
		if p.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
			p.err = os.NewSyscallError("epoll_create1", err)
			return
		}
		p.timer = p.newTimer()
		ready()
		go p.run()
	})
	return p.err
}

// newTimer makes the timer. It returns -1 if the system has none.
func (p *poller) newTimer() int {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return -1
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: timerID}
	if unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, fd, &event) != nil {
		_ = unix.Close(fd)
		return -1
	}
	return fd
}

// add registers a connection, for no events yet.
func (p *poller) add(c *Conn) error {
	if err := p.start(func() {}); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.conns[p.last] != nil {
		p.last = (p.last + 1) & math.MaxInt32
	}
	c.id = p.last
	event := unix.EpollEvent{Events: unix.EPOLLONESHOT, Fd: c.id}
	if err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, c.fd, &event); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	p.conns[c.id] = c
	return nil
}

// arm registers a connection for the next of the events that it wants; needs the
// connection's mu.
func (p *poller) arm(c *Conn) error {
	event := unix.EpollEvent{Events: c.wanted() | unix.EPOLLONESHOT, Fd: c.id}
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.epoll, unix.EPOLL_CTL_MOD, c.fd, &event))
}

// remove forgets a connection that is about to be closed.
func (p *poller) remove(c *Conn) {
	_ = unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, c.fd, nil) // closing does it, too
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c.id)
}

func (p *poller) find(id int32) *Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[id]
}

// slice is how long the poller's thread would like to run at a time, in ns.
const slice = 100_000

// hurry has the system run this thread soon when it is woken, before a thread that computes
// or polls without end. Linux does so, from version 6.12 on, for threads that ask for a
// short time slice.
func hurry() {
	if a, err := unix.SchedGetAttr(0, 0); err == nil {
		a.Runtime = slice
		_ = unix.SchedSetAttr(0, a, 0) // the system may refuse
	}
}

// run passes events to their connections, for as long as the program lasts.
func (p *poller) run() {
	defer panics.Recover()
	runtime.LockOSThread() // for its priority
	hurry()
	var events [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(p.epoll, events[:], -1)
		if err != nil && err != unix.EINTR {
			panic(os.NewSyscallError("epoll_wait", err)) // the descriptor was closed by somebody else
		}
		for i := range max(n, 0) {
			if events[i].Fd == timerID {
				p.expire()
			} else if c := p.find(events[i].Fd); c != nil {
				c.happened(events[i].Events)
			}
		}
	}
}
