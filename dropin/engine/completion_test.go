package main

import (
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/verbs"
)

// A ring is a completion queue in a test, and the program's end of it.
type ring struct {
	*completionQueue
	bell int // the end of a pipe that is read
}

func newRing(t *testing.T, entries int) *ring {
	t.Helper()
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = syscall.Close(ends[0]), syscall.Close(ends[1]) })
	r := &ring{&completionQueue{context: &context{eventFD: -1}, bell: ends[1]}, ends[0]}
	r.queue = like(r.queue)
	r.queue.entries = array(r.queue.entries, entries)
	assign(&r.queue.mask, uint64(entries-1))
	assign(&r.queue.event_fd, uint64(ends[1]))
	return r
}

// put puts a completion of request id.
func (r *ring) putID(id uint64, solicited bool) bool {
	c := like(r.queue.entries)
	assign(&c.id, id)
	return r.add(*c, solicited, nil)
}

// taken is a completion as the program gets it.
type taken struct {
	id     uint64
	status int
}

// take takes all completions.
func (r *ring) take() (all []taken) {
	head := (*uint64)(&r.queue.head)
	for tail := atomic.LoadUint64((*uint64)(&r.queue.tail)); *head != tail; atomic.AddUint64(head, 1) {
		c := entry(r.queue, *head)
		all = append(all, taken{uint64(c.id), int(c.status)})
	}
	return all
}

// rung reports how often the bell was rung.
func (r *ring) rung() int {
	n, _ := syscall.Read(r.bell, make([]byte, 100))
	return max(n, 0)
}

func TestARingWraps(t *testing.T) {
	r := newRing(t, 4)
	next := uint64(0)
	for round := range 10 {
		n := 1 + round%4
		for i := range n {
			if !r.putID(next+uint64(i), false) {
				t.Fatalf("completion %d of %d has no room", i, n)
			}
		}
		got := r.take()
		if len(got) != n {
			t.Fatalf("%d completions, expected %d", len(got), n)
		}
		for i := range got {
			if got[i].id != next+uint64(i) {
				t.Errorf("%+v, expected %d", got[i], next+uint64(i))
			}
		}
		next += uint64(n)
	}
}

func TestAFullRingTakesNoMore(t *testing.T) {
	r := newRing(t, 4)
	for i := range uint64(4) {
		r.putID(i, false)
	}
	if r.putID(4, false) {
		t.Error("a fifth completion was taken by four entries")
	}
	if got := r.take(); len(got) != 4 || got[3].id != 3 {
		t.Errorf("%+v", got)
	}
	if !r.putID(5, false) {
		t.Error("there is room again, and a completion was refused")
	}
}

// TestEventsAreRaisedAsTheProgramAskedFor goes through what it can ask for.
func TestEventsAreRaisedAsTheProgramAskedFor(t *testing.T) {
	const disarmed, armedSolicited, armed = 0, 1, 2
	for _, c := range []struct {
		armed     uint64
		solicited bool
		rings     int
	}{
		{disarmed, false, 0}, {disarmed, true, 0},
		{armedSolicited, false, 0}, {armedSolicited, true, 1},
		{armed, false, 1}, {armed, true, 1},
	} {
		r := newRing(t, 4)
		assign(&r.queue.armed, c.armed)
		r.putID(0, c.solicited)
		r.putID(1, c.solicited) // it is disarmed by the first
		if n := r.rung(); n != c.rings || int(r.queue.raised) != c.rings {
			t.Errorf("armed %d, solicited %v: rung %d times for %d events, expected %d", c.armed, c.solicited, n, r.queue.raised, c.rings)
		}
	}
}

func TestAnErrorIsAlwaysSolicited(t *testing.T) {
	r := newRing(t, 4)
	assign(&r.queue.armed, 1)
	c := like(r.queue.entries)
	c.status = 5
	r.add(*c, false, nil)
	if r.rung() != 1 {
		t.Error("no event was raised")
	}
}

func TestAResizedRingKeepsWhatIsThere(t *testing.T) {
	anEngine(t, false)
	b := newBed(t)
	r := &ring{completionQueue: b.cq}
	for i := range uint64(3) {
		r.putID(i, false)
	}
	r.queue.head++
	a := argument(resizeCQ)
	assign(&a.handle, uint64(b.cqHandle))
	a.queue = like(a.queue)
	a.queue.entries = array(a.queue.entries, 2)
	a.queue.mask = 0
	if errno := resizeCQ(a); errno != syscall.EINVAL {
		t.Errorf("two completions into one entry: %v", errno)
	}
	a.queue.mask = 1
	must(t, resizeCQ(a))
	if got := r.take(); len(got) != 2 || got[0].id != 1 || got[1].id != 2 {
		t.Errorf("%+v, expected 1 and 2", got)
	}
}

// event takes an asynchronous event.
func (b *bed) event() (kind uint32, owner uint64, errno syscall.Errno) {
	a := argument(nextEvent)
	assign(&a.context, uint64(b.context))
	errno = nextEvent(a)
	return uint32(a._type), uint64(a.owner), errno
}

// TestAnOverflowIsAnEvent has one raised, and others about it that are forgotten when the
// queue is destroyed or the context closed.
func TestAnOverflowIsAnEvent(t *testing.T) {
	anEngine(t, false)
	b := newBed(t)
	b.cq.owner = 77
	overflow := verbs.Event{ID: verbs.EventCQOverflow, CQ: b.cq.cq}
	raise(overflow)
	if kind, owner, errno := b.event(); kind != 0 || owner != 77 || errno != 0 { // IBV_EVENT_CQ_ERR
		t.Errorf("event %d about %d, %v", kind, owner, errno)
	}
	if _, _, errno := b.event(); errno != syscall.EAGAIN {
		t.Errorf("another event: %v", errno)
	}
	raise(overflow)
	b.cq.context.forget(77)
	if _, _, errno := b.event(); errno != syscall.EAGAIN {
		t.Errorf("an event about what is destroyed: %v", errno)
	}
	drain := make([]byte, 10)
	_, _ = syscall.Read(b.events[0], drain)
	a := argument(closeContext)
	assign(&a.handle, uint64(b.context))
	must(t, closeContext(a))
	raise(overflow)
	if n, _ := syscall.Read(b.events[0], drain); n > 0 {
		t.Error("a closed context received an event")
	}
}
