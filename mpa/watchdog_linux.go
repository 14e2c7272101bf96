package mpa

import (
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// nap is how often the watchdog looks.
const nap = time.Millisecond

// A watchdog looks after the sockets whose readers sleep, one for the whole program.
//
// It is woken by a timer of the system's, and not by one of Go's: while there is one
// of those, each wait in the network poller has a limit, and arms and disarms a timer
// of the hardware. That doubles what a small message costs. This one is armed once a nap.
type watchdog struct {
	mu      sync.Mutex
	sockets map[*socket]struct{}
	runs    bool
	timer   *os.File // nil if there was none to be had
}

var watch watchdog

func (w *watchdog) add(s *socket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.sockets == nil {
		w.sockets = make(map[*socket]struct{})
	}
	s.leader.seen = s.leader.visits.Load() - 1
	w.sockets[s] = struct{}{}
	if w.runs {
		return
	}
	w.runs = true
	if w.timer == nil {
		w.timer = newTimer()
	}
	w.arm(nap)
	go w.run()
}

func (w *watchdog) remove(s *socket) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sockets, s)
}

func (w *watchdog) run() {
	for {
		w.wait()
		if !w.look() {
			return
		}
	}
}

// look looks after each socket and reports whether there are any.
func (w *watchdog) look() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.sockets {
		s.tend()
	}
	w.runs = len(w.sockets) > 0
	if !w.runs {
		w.arm(0)
	}
	return w.runs
}

// newTimer is a timer of the system's, or nil.
func newTimer() *os.File {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "timerfd")
}

// arm has the timer expire each every; 0 is not at all.
func (w *watchdog) arm(every time.Duration) {
	if w.timer == nil {
		return
	}
	rc, err := w.timer.SyscallConn()
	if err != nil {
		return
	}
	t := unix.NsecToTimespec(int64(every))
	_ = rc.Control(func(fd uintptr) {
		_ = unix.TimerfdSettime(int(fd), 0, &unix.ItimerSpec{Interval: t, Value: t}, nil)
	})
}

func (w *watchdog) wait() {
	if w.timer == nil {
		time.Sleep(nap)
		return
	}
	var count [8]byte
	if _, err := w.timer.Read(count[:]); err != nil {
		time.Sleep(nap)
	}
}
