package mpa

// The transport of a TCP socket on Linux: attempts that never wait, by readv
// and writev on the non-blocking socket, and the runtime's network poller to
// wait in between.
//
// The poller is edge-triggered, and RawConn forgets that the socket was ready
// when it is entered. So an attempt that may be followed by a wait is made
// within RawConn, which waits when it is told that the attempt failed.

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/pages"
)

type socket struct {
	rc       syscall.RawConn
	spin     time.Duration
	stats    *counters
	deadline *readDeadline
	closing  atomic.Bool

	// The writer's, for tryWrite.
	writeFn func(fd uintptr) bool
	batch   *batch
	guard   Guard
	wait    bool
	whole   int // frames of the batch that had been written before
	wvec    vector
	werr    error

	// The receiving half's, for tryRead and tryLook.
	readFn  func(fd uintptr) bool
	lookFn  func(fd uintptr)
	ahead   *readAhead // what is read into, if there are no windows
	into    []byte     // what follows the windows
	sink    Sink       // asked for windows, if not nil
	off     int        // of the windows in the ULPDU
	rest    int        // octets that the windows are to have
	windows [][]byte
	rvec    vector
	n       int
	rerr    error
	looker  *readAhead // what tryLook reads into
	looks   int        // that found nothing, since the last that did
	seen    int
	lookErr error

	given   bool // tryRead has given the half away
	follows bool // to those who poll, who may go on for now
	leader  leader
	parked  bool // the last read had to wait
	bound   bool // to one processor, with this whole program
	yielder yielder
	began   time.Time // of polling

	// Of who has taken the seat.
	awaitFn  func(fd uintptr) bool
	looked   bool // tryAwait has
	ready    [1]unix.PollFd
	awaitErr error // what ended the wait in place of octets
	patience patience
}

// A patience is for how long who has taken the seat is willing to wait.
type patience struct {
	mu    sync.Mutex
	waits bool
	done  <-chan struct{} // of the context, whose own methods could hold up the watchdog
}

func newSocket(nc net.Conn, spin time.Duration, stats *counters, d *readDeadline) transport {
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil
	}
	rc, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	one := bound()
	s := &socket{rc: rc, spin: spin, stats: stats, deadline: d, bound: one, yielder: yielder{on: one}, leader: newLeader()}
	s.writeFn, s.readFn, s.lookFn, s.awaitFn = s.tryWrite, s.tryRead, s.tryLook, s.tryAwait
	return s
}

// bound reports whether this program has one processor only.
func bound() bool {
	var set unix.CPUSet
	return unix.SchedGetaffinity(0, &set) == nil && set.Count() == 1
}

func (s *socket) tries() bool  { return true }
func (s *socket) places() bool { return true }
func (s *socket) polls() bool  { return s.spin > 0 }
func (s *socket) leads() bool  { return !s.bound }
func (s *socket) leave()       { s.leader.reclaim(readers) }
func (s *socket) close() {
	s.closing.Store(true)
	s.leader.reclaim(readers)
}

func (s *socket) flush(b *batch, g Guard, wait bool) error {
	s.batch, s.guard, s.wait, s.werr = b, g, wait, nil
	s.whole = b.whole
	if err := s.rc.Write(s.writeFn); err != nil {
		return err
	}
	return s.werr
}

// tryWrite writes until the batch is empty or the socket takes no more. False
// asks RawConn to wait and to call again.
func (s *socket) tryWrite(fd uintptr) bool {
	for !s.batch.empty() {
		if s.guard != nil && !s.guard.Acquire() {
			s.werr = ErrRevoked
			return true
		}
		n, errno := s.wvec.write(fd, s.batch.pieces[s.batch.first:])
		var fault *MemoryError
		if errno == unix.EFAULT {
			fault = s.batch.unreadable()
		}
		if s.guard != nil {
			s.guard.Release()
		}
		switch errno {
		case 0:
			s.stats.writes.Add(1)
			s.batch.wrote(n)
		case unix.EINTR:
		case unix.EAGAIN:
			// Frames that have left are told before more is waited for.
			return !s.wait || s.batch.whole > s.whole
		default:
			if s.werr = os.NewSyscallError("writev", errno); fault != nil {
				s.werr = fault
			}
			return true
		}
	}
	return true
}

func (s *socket) read(a *readAhead) (int, error) {
	s.sink, s.ahead = nil, a
	return s.doRead()
}

func (s *socket) readWindows(sink Sink, off, rest int, more []byte) (int, error) {
	s.sink, s.off, s.rest, s.into = sink, off, rest, more
	return s.doRead()
}

func (s *socket) doRead() (int, error) {
	if s.awaited() {
		s.give()
		s.follow()
		s.take()
	}
	s.n, s.rerr, s.parked = 0, nil, false // an attempt that fails has read nothing
	if s.spin > 0 || s.yielder.pays() {
		// Whoever waits for what was handed up goes first: that is what the
		// polling is for.
		s.give()
		runtime.Gosched()
		s.take()
	}
	// Who has the half may close the connection, which waits for all that is within
	// RawConn: so the half is waited for outside.
	err := s.rc.Read(s.readFn)
	for s.given && err == nil {
		if s.follows {
			s.follows = false
			if s.leader.row < ledLong {
				runtime.Gosched()
			} else {
				s.follow()
			}
		}
		s.take()
		err = s.rc.Read(s.readFn)
	}
	if s.given {
		s.take()
	}
	if err != nil {
		return 0, err
	}
	return s.n, s.rerr
}

// awaited reports that what came last would have come sooner to somebody else: it was
// little, the reader had been waiting for it, and so had he, as for what came before.
// One who polls takes it by himself.
func (s *socket) awaited() bool {
	if s.spin > 0 || s.bound || s.sink != nil {
		return false
	}
	came := s.leader.came()
	if !s.parked || s.n >= bulkRead {
		s.leader.broke()
	}
	return came && s.leader.lasts() && s.ahead.start == s.ahead.end && !s.deadline.limited()
}

// follow sleeps, with the half given away, until the seat is the reader's again. It is not
// for the middle of a ULPDU that is being placed.
func (s *socket) follow() {
	watch.add(s)
	s.leader.sleep(&s.closing)
	watch.remove(s)
}

// tend gives the seat back to the reader if nobody comes any more, and lets it look at
// its deadline; and it ends a wait that has lost its patience, or has become long.
func (s *socket) tend() {
	if s.leader.neglected() {
		s.leader.reclaim(lapsed)
	} else if s.deadline.limited() {
		s.leader.reclaim(readers)
	}
	s.patience.mu.Lock()
	defer s.patience.mu.Unlock()
	if s.patience.waits && (s.leader.long() || isClosed(s.patience.done)) {
		s.deadline.call()
	}
}

// give and take are for moments in which somebody in Poll may have the half. It is
// kept in the middle of a ULPDU that is being placed.
func (s *socket) give() {
	if s.sink == nil {
		s.ahead.half.Unlock()
		s.given = true
	}
}

func (s *socket) take() {
	if s.given {
		s.ahead.half.Lock()
		s.given = false
	}
}

// tryTake is take that does not wait, and reports whether this has the half.
func (s *socket) tryTake() bool {
	if s.given && s.ahead.half.TryLock() {
		s.given = false
	}
	return !s.given
}

// visited reports that somebody in Poll has left something to be dealt with.
func (s *socket) visited() bool {
	if s.sink != nil || !s.ahead.visited {
		return false
	}
	s.ahead.visited = false
	return true
}

// led reports that somebody has been in Poll since it was asked last: as long as
// they come what arrives is better left to them.
func (s *socket) led() bool {
	return s.spin > 0 && s.sink == nil && s.leader.came()
}

func (s *socket) lead() bool { return s.leader.take() }

func (s *socket) await(ctx context.Context) {
	done := ctx.Done()
	if isClosed(done) {
		s.awaitErr = ctx.Err()
		return
	}
	s.patience.set(true, done)
	s.looked = false
	s.awaitErr = s.rc.Read(s.awaitFn)
}

// tryAwait looks whether there is something to be read. False asks RawConn to wait.
func (s *socket) tryAwait(fd uintptr) bool {
	if s.looked {
		return true
	}
	s.looked = true
	s.ready[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	n, err := unix.Poll(s.ready[:], 0)
	return n > 0 || err != nil
}

func (s *socket) unlead() {
	s.patience.set(false, nil)
	s.deadline.calm()
	if s.awaitErr != nil {
		// It is closed, or its deadline has passed, which the reader is told of, too;
		// or what was waited for comes from elsewhere, or not at all: then the
		// reader had better wait for octets.
		s.leader.leave(readers)
		return
	}
	s.leader.leave(free)
	if s.closing.Load() {
		s.leader.reclaim(readers)
	}
}

func (p *patience) set(waits bool, done <-chan struct{}) {
	p.mu.Lock()
	p.waits, p.done = waits, done
	p.mu.Unlock()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func (s *socket) look(a *readAhead) (int, error) {
	s.looker, s.seen, s.lookErr = a, 0, nil
	if s.spin > 0 {
		s.leader.visit() // who has waited has been counted
	}
	if err := s.rc.Control(s.lookFn); err != nil {
		return 0, nil // it is closed, which Receive tells
	}
	return s.seen, s.lookErr
}

// tryLook reads once, if there is anything.
func (s *socket) tryLook(fd uintptr) {
	n, errno := readOne(fd, s.looker.room())
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		// As in poll; those who poll need not know that somebody may wait for
		// their processor.
		if s.looks++; s.looks%looksToYield == 0 {
			schedYield()
		}
	case errno != 0:
		s.lookErr = os.NewSyscallError("read", errno)
	case n == 0:
		s.lookErr = io.EOF
	default:
		s.stats.reads.Add(1)
		s.seen, s.looks = n, 0
		s.leader.satisfy()
	}
}

// tryRead reads once, polling for as long as it may. False asks RawConn to
// wait and to call again. It ends with the half given away if somebody in Poll has it
// then, or had it: RawConn, entered anew, tells of the deadline and of closing.
func (s *socket) tryRead(fd uintptr) bool {
	for polls := 0; ; {
		if !s.tryTake() {
			return true
		}
		if s.visited() {
			s.n = 0
			return true
		}
		if s.led() {
			s.give()
			s.follows = true
			return true
		}
		n, errno, err := s.attempt(fd)
		switch {
		case err != nil:
			s.rerr = err
			return true
		case errno == 0:
			if n == 0 {
				s.rerr = io.EOF
			} else {
				s.stats.reads.Add(1)
			}
			if polls > 0 && s.spin == 0 {
				s.yielder.came(time.Since(s.began))
			}
			s.leader.found(s.parked)
			s.n = n
			return true
		case errno == unix.EAGAIN:
			if polls++; !s.poll(polls) {
				if s.sink == nil {
					s.ahead.rest()
				}
				s.parked = true
				s.give()
				return false
			}
		case errno != unix.EINTR:
			s.rerr = os.NewSyscallError("readv", errno)
			return true
		}
	}
}

// poll lets others run and reports whether to try again before waiting, after
// polls attempts. A peer on the same core has to run for anything to arrive, and so
// have this program's own goroutines.
func (s *socket) poll(polls int) bool {
	switch {
	case s.spin == 0:
		return s.yield(polls)
	case s.spin < 0 || s.closing.Load():
		return false
	case polls == 1:
		s.began = time.Now()
	case time.Since(s.began) > s.spin:
		return false
	}
	s.give()
	if polls%yieldEvery == 1 {
		schedYield()
	}
	runtime.Gosched()
	return true
}

// yield is poll for a reader that does not spin.
func (s *socket) yield(polls int) bool {
	switch {
	case polls > yieldTries:
		s.yielder.failed()
		return false
	case polls > 1:
		runtime.Gosched()
	case !s.yielder.due():
		return false
	default:
		s.began = time.Now()
	}
	schedYield()
	return true
}

const (
	// A system call a poll would be most of its cost.
	yieldEvery = 4

	// Those who poll have nothing else to do between two looks than the reader has.
	// Where the peer is on another processor an answer comes before so many.
	looksToYield = 16
)

// attempt reads without waiting.
func (s *socket) attempt(fd uintptr) (int, syscall.Errno, error) {
	if s.sink == nil {
		n, errno := readOne(fd, s.ahead.room())
		return n, errno, nil
	}
	var err error
	s.windows, err = s.sink.Window(s.windows[:0], s.off)
	if err != nil {
		return 0, 0, windowError{err}
	}
	defer s.unhold()
	have := 0
	for _, w := range s.windows {
		have += len(w)
	}
	if have != s.rest {
		return 0, 0, windowError{fmt.Errorf("mpa: the sink has memory for %d octets, expected %d", have, s.rest)}
	}
	s.windows = append(s.windows, s.into)
	n, errno := s.rvec.read(fd, s.windows)
	if errno == unix.EFAULT {
		return 0, 0, windowError{s.sink.Unwritable(unwritable(s.windows))}
	}
	return n, errno, nil
}

// unwritable says why the system could not write to windows.
func unwritable(windows [][]byte) error {
	for _, w := range windows {
		if _, err := pages.Writable(w); err != nil {
			return err
		}
	}
	return &pages.Fault{}
}

// unhold ends the hold of the windows, and keeps nothing of them.
func (s *socket) unhold() {
	s.sink.Release()
	clear(s.windows)
}
