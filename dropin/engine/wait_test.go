package main

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// What wait returns (enum weft_waited).
const waitedBell, waitedEvent, waitedInterrupted = 0, 1, 2

// A waited is a queue pair with a peer in the same engine, and two completion channels: of
// its sends, and of its receives.
type waited struct {
	t               *testing.T
	q, peer         *queuePair
	sends, receives *eventQueue
}

// An eventQueue is a completion queue, and the channel of its events.
type eventQueue struct {
	t        *testing.T
	fd, ring int
	handle   uint32
	cq       *completionQueue
}

func newEventQueue(t *testing.T, b *bed) *eventQueue {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = syscall.Close(ends[0]), syscall.Close(ends[1]) })
	c := &eventQueue{t: t, fd: ends[0], ring: ends[1], handle: b.newCQOf(ends[1], 64)}
	c.cq = completionQueues.get(c.handle)
	return c
}

func newWaited(t *testing.T) *waited {
	t.Helper()
	anEngine(t, true)
	b := newBed(t)
	w := &waited{t: t, sends: newEventQueue(t, b), receives: newEventQueue(t, b)}
	w.q, w.peer = b.newQPOf(w.sends.handle, w.receives.handle), b.newQP()
	w.q.ready(t, attributes{dest: w.peer.number})
	w.peer.ready(t, attributes{dest: w.q.number})
	w.q.awaitStream(t)
	w.peer.awaitStream(t)
	return w
}

// open is how many Sends have not completed.
func (q *queuePair) open() int {
	q.sends.acks.mu.Lock()
	defer q.sends.acks.mu.Unlock()
	return len(q.sends.acks.open)
}

// send posts a receive of no octets, and the Send for it when there is room.
func (q *queuePair) send(to *queuePair) {
	for q.open() > queueDepth/2 {
		runtime.Gosched()
	}
	emptied(q.sends.to)
	atomic.AddUint64((*uint64)(&to.receives.queue.tail), 1)
	to.takeReceives()
	q.request(uint64(q.sends.queue.tail), 1, 1, 0)
	atomic.AddUint64((*uint64)(&q.sends.queue.tail), 1)
	q.takeSends()
}

// readable waits until the descriptor is.
func (c *eventQueue) readable() {
	ready := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}
	for {
		if n, err := unix.Poll(ready, -1); n == 1 {
			return
		} else if err != unix.EINTR {
			c.t.Errorf("poll: %v", err)
			return
		}
	}
}

// rings reports whether it is, now.
func (c *eventQueue) rings() bool {
	n, _ := unix.Poll([]unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLIN}}, 0)
	return n > 0
}

// lead is a call of wait by the library.
func (c *eventQueue) lead() int {
	for {
		if is := wait(c.fd, []uint32{c.handle}); is != waitedInterrupted {
			return is
		}
	}
}

// event takes an event, as ibv_get_cq_event does.
func (c *eventQueue) event() {
	if c.lead() == waitedBell {
		c.octet()
	}
	c.took()
}

// octet takes one from the bell.
func (c *eventQueue) octet() {
	c.readable()
	var one [1]byte
	if n, err := syscall.Read(c.fd, one[:]); n != 1 {
		c.t.Errorf("read %d octets, %v", n, err)
	}
}

// took takes the event that there is.
func (c *eventQueue) took() {
	if atomic.AddUint32((*uint32)(&c.cq.queue.raised), ^uint32(0)) == ^uint32(0) {
		c.t.Error("there was no event")
	}
}

// arm asks for an event.
func (c *eventQueue) arm() { atomic.StoreUint32((*uint32)(&c.cq.queue.armed), 2) }

// empty checks that neither events nor octets are left, and takes the completions.
func (c *eventQueue) empty() {
	c.t.Helper()
	if n := atomic.LoadUint32((*uint32)(&c.cq.queue.raised)); n != 0 || c.rings() {
		c.t.Errorf("%d events are left, the bell rings: %v", n, c.rings())
	}
	emptied(c.cq)
}

// emptied takes the completions of a queue.
func emptied(q *completionQueue) {
	atomic.StoreUint64((*uint64)(&q.queue.head), atomic.LoadUint64((*uint64)(&q.queue.tail)))
}

// An event that is raised while a thread receives for the channel is that thread's; the bell
// rings for the others.
func TestTheFirstEventIsTheLeadersOwn(t *testing.T) {
	for _, events := range []int{0, 1, 3} {
		r := newRing(t, 4)
		w := &waiting{cqs: []*completionQueue{r.completionQueue}}
		r.lead(1)
		for i := range events {
			assign(&r.queue.armed, 2)
			r.putID(uint64(i), false)
		}
		if n := r.rung(); n != 0 {
			t.Errorf("the bell rang %d times while a thread received", n)
		}
		if mine := w.led(); mine != (events > 0) {
			t.Errorf("%d events, and one is the thread's: %v", events, mine)
		}
		if n := r.rung(); n != max(0, events-1) {
			t.Errorf("the bell rang %d times for %d events", n, events)
		}
		assign(&r.queue.armed, 2)
		r.putID(3, false)
		if n := r.rung(); n != 1 {
			t.Errorf("the bell rang %d times afterwards, expected once", n)
		}
	}
}

// Each event of a program that waits in ibv_get_cq_event is one that it gets, whoever receives.
func TestLeadersGetEachEvent(t *testing.T) {
	w := newWaited(t)
	for range 200 {
		w.receives.arm()
		got := make(chan struct{})
		go func() {
			defer close(got)
			w.receives.event()
		}()
		w.peer.send(w.q)
		<-got
		w.receives.empty()
	}
}

// What a thread receives that waits for one channel rings the bell of another, which a
// program may wait for in another way.
func TestALeaderRingsOtherBells(t *testing.T) {
	w := newWaited(t)
	for range 200 {
		w.sends.arm()
		w.receives.arm()
		got := make(chan struct{})
		go func() {
			defer close(got)
			w.receives.event()
		}()
		w.q.send(w.peer)
		w.sends.octet() // while the other thread waits
		w.sends.took()
		w.peer.send(w.q)
		<-got
		w.sends.empty()
		w.receives.empty()
	}
}

// Queue pair and completion queue are destroyed while a thread waits.
func TestAQueueIsDestroyedWhileAThreadLeads(t *testing.T) {
	w := newWaited(t)
	got := make(chan int)
	began := make(chan struct{})
	go func() {
		close(began)
		got <- w.receives.lead()
	}()
	<-began
	w.q.destroy(t)
	a := argument(destroyCQ)
	assign(&a.handle, uint64(w.receives.handle))
	must(t, destroyCQ(a))
	if is := <-got; is != waitedBell {
		t.Errorf("the wait ended with %d, expected %d: there is no event", is, waitedBell)
	}
	if w.receives.rings() {
		t.Error("the bell rings for a queue that is gone")
	}
}

// A program that arms its queue and waits in another way has the connection's reader receive
// nearly always; one that waits in ibv_get_cq_event receives by itself.
func TestReadersReceiveForProgramsThatWaitElsewhere(t *testing.T) {
	var q completionQueue
	left := 0
	for range 1 << 16 {
		if !q.leaves() {
			left++
		}
	}
	if left != 13 {
		t.Errorf("%d of 65536 events were left to the program, expected those of 16, 32, ... 65536", left)
	}
	q.led.Store(true)
	if q.leaves() {
		t.Error("events are not left to a program that waits in ibv_get_cq_event")
	}
}
