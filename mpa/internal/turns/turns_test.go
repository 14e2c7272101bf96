package turns

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
)

// A pipe is a Source that has octets when they are put there. Who waits for them durably
// blocks.
type pipe struct {
	mu     sync.Mutex
	more   *sync.Cond
	octets int
	end    error // behind them
	past   bool  // the deadline has passed
	closed bool
	within atomic.Int32 // calls of Read under way
}

func newPipe() *pipe {
	p := &pipe{}
	p.more = sync.NewCond(&p.mu)
	return p
}

func (p *pipe) Read(step func(uintptr) bool) error {
	p.within.Add(1)
	defer p.within.Add(-1)
	for {
		if err := p.over(); err != nil {
			return err
		}
		p.mu.Lock()
		before := p.octets
		p.mu.Unlock()
		if step(0) {
			return nil
		}
		p.mu.Lock()
		for p.octets <= before && p.end == nil && !p.past && !p.closed {
			p.more.Wait()
		}
		p.mu.Unlock()
	}
}

func (p *pipe) over() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return net.ErrClosed
	case p.past:
		return os.ErrDeadlineExceeded
	}
	return nil
}

func (p *pipe) Readable(uintptr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.octets > 0 || p.end != nil
}

func (p *pipe) SetReadDeadline(t time.Time) error {
	p.change(func() { p.past = !t.IsZero() && t.Before(time.Now()) })
	return nil
}

func (p *pipe) Try(uintptr) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.octets > 0:
		n, p.octets = p.octets, 0
		return n, nil
	case p.end != nil:
		return 0, p.end
	}
	return 0, ErrNothing
}

func (p *pipe) Rest() {}

func (p *pipe) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	p.more.Broadcast()
}

// A rig is turns over a pipe, with their reader at work.
type rig struct {
	*Turns
	pipe *pipe
	got  int // octets, by the reader
	done chan error
}

func newRig(t *testing.T, yield func()) *rig {
	r := &rig{pipe: newPipe(), done: make(chan error, 1)}
	r.Turns = New(r.pipe, yield)
	r.watch = &watchdog{open: func() *os.File { return nil }} // one that sleeps by the bubble's clock
	go func() {
		r.Begin()
		defer r.End()
		for {
			n, err := r.Read(r.pipe)
			r.got += n
			if err != nil {
				r.done <- err
				return
			}
		}
	}()
	synctest.Wait()
	t.Cleanup(func() {
		r.Close()
		r.pipe.change(func() { r.pipe.closed = true })
		time.Sleep(2 * nap) // the watchdog ends
	})
	return r
}

// send has n octets arrive.
func (r *rig) send(n int) {
	r.pipe.change(func() { r.pipe.octets += n })
	synctest.Wait()
}

// visit looks for octets, and returns how many there were.
func (r *rig) visit(left bool) int {
	if !r.Enter() {
		return -1
	}
	n, _ := r.pipe.Try(0)
	r.Exit(n, left)
	synctest.Wait()
	return n
}

// free visits until the reader sleeps, and returns how often.
func (r *rig) free(n int) int {
	for i := range 10 * maxVisits {
		if r.State() == Free {
			return i
		}
		r.tally.visit()
		r.send(n)
	}
	return -1
}

// in runs f in a bubble whose watchdog is its own.
func in(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }

func none() {}

func TestTheReaderSleepsForThoseWhoCome(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t, nil)
		if n := r.free(1); n != minVisits+1 && n != minVisits {
			t.Errorf("after %d times, expected %d", n, minVisits)
		}
	})
}

// Much at once, and what the reader has a deadline for, are its own.
func TestTheReaderStaysAwakeForWhatIsItsOwn(t *testing.T) {
	for name, prepare := range map[string]func(r *rig) int{
		"much":            func(*rig) int { return BulkRead },
		"a deadline":      func(r *rig) int { _ = r.SetDeadline(time.Now().Add(time.Hour)); return 1 },
		"somebody sleeps": func(*rig) int { return 0 },
	} {
		in(t, func(t *testing.T) {
			r := newRig(t, nil)
			n := prepare(r)
			r.send(1) // and so the next Read is told
			for range 4 * minVisits {
				if r.Lead(t.Context(), none) {
					t.Fatalf("%s: the wait was free", name)
				}
				r.send(max(n, 1))
				if n == 0 {
					r.Leave()
				}
				if r.State() == Free {
					t.Fatalf("%s: the reader sleeps", name)
				}
			}
		})
	}
}

func TestALeaderWaitsInTheReadersPlace(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.free(1)
		had, rested := r.got, 0
		for i := range 10 {
			led := make(chan bool)
			go func() { led <- r.Lead(t.Context(), func() { rested++ }) }()
			synctest.Wait()
			if r.State() != Led {
				t.Fatalf("the state is %v, expected that somebody leads", r.State())
			}
			r.send(3)
			if !<-led || r.visit(false) != 3 || rested != i+1 {
				t.Errorf("the leader has not found what came")
			}
		}
		if r.got != had {
			t.Errorf("the reader has read %d octets of others", r.got-had)
		}
	})
}

// What ends the wait of a leader, and who waits then.
func TestAWaitInTheReadersPlaceEnds(t *testing.T) {
	for _, v := range []struct {
		name string
		end  func(r *rig, cancel func())
		want State
	}{
		{"octets", func(r *rig, _ func()) { r.send(1) }, Free},
		{"the peer", func(r *rig, _ func()) { r.pipe.change(func() { r.pipe.end = io.EOF }) }, Free},
		{"an interruption", func(r *rig, _ func()) { r.Interrupt() }, Reading},
		{"a deadline", func(r *rig, _ func()) { _ = r.SetDeadline(time.Unix(1, 0)) }, Reading},
		{"its context", func(_ *rig, cancel func()) { cancel() }, Reading},
		{"nothing for long", func(*rig, func()) { time.Sleep(2 * longNaps * nap) }, Reading},
		{"closing", func(r *rig, _ func()) { r.Close(); r.pipe.change(func() { r.pipe.closed = true }) }, Closed},
		{"somebody else who sleeps", func(r *rig, _ func()) { r.Leave(); r.send(1) }, Reading},
	} {
		in(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.free(1)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			led := make(chan State)
			go func() { r.Lead(ctx, none); led <- r.State() }()
			synctest.Wait()
			v.end(r, cancel)
			if got := <-led; got != v.want {
				t.Errorf("%s: %v, expected %v", v.name, got, v.want)
			}
		})
	}
}

// An interruption that comes too early is for the next wait, and a context that is done
// ends it at once.
func TestAnInterruptionIsNotLost(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.Interrupt()
		r.free(1)
		if !r.Lead(t.Context(), none) || r.State() != Reading {
			t.Errorf("the state is %v, expected that the wait was interrupted", r.State())
		}
		r.free(1)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if !r.Lead(ctx, none) || r.State() != Reading {
			t.Errorf("the state is %v, expected that nobody waits with a context that is done", r.State())
		}
	})
}

// What a visitor leaves, and much at once, wakes the reader; and so does everything else
// that is its turn.
func TestAReaderThatSleepsIsWoken(t *testing.T) {
	for _, v := range []struct {
		name string
		do   func(r *rig)
	}{
		{"something left", func(r *rig) { r.visit(true) }},
		{"much at once", func(r *rig) { r.pipe.octets = BulkRead; r.visit(false) }},
		{"a visitor goes", func(r *rig) { r.Leave() }},
		{"a deadline", func(r *rig) { _ = r.SetDeadline(time.Now().Add(time.Hour)); time.Sleep(2 * nap) }},
		{"nobody comes", func(*rig) { time.Sleep(2*nap + nap/2) }},
	} {
		in(t, func(t *testing.T) {
			r := newRig(t, nil)
			r.free(1)
			v.do(r)
			synctest.Wait()
			if r.State() != Reading {
				t.Errorf("%s: %v, expected that the reader is awake", v.name, r.State())
			}
			had := r.got
			if r.send(1); r.got != had+1 {
				t.Errorf("%s: the reader has not read what came", v.name)
			}
		})
	}
}

// While there is a visitor in each nap the watchdog wakes no reader.
func TestAReaderSleepsWhileSomebodyComes(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.free(1)
		for range 100 {
			time.Sleep(nap / 2)
			if r.visit(false); r.State() != Free {
				t.Fatalf("%v, expected that the reader sleeps", r.State())
			}
		}
	})
}

// Visitors who take what the reader waits for are noticed as those are who came before it.
func TestAReaderThatIsWokenInVainSleepsInTheEnd(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t, nil)
		for i := 0; r.State() != Free; i++ {
			if i > 2*minVisits {
				t.Fatal("the reader is awake still")
			}
			r.pipe.mu.Lock()
			r.pipe.octets++
			r.pipe.more.Broadcast()
			r.pipe.octets = 0 // somebody else had it
			r.tally.visit()
			r.pipe.mu.Unlock()
			r.pipe.change(func() { r.pipe.octets = 0 })
			synctest.Wait()
			if r.State() == Reading {
				r.tally.visit()
				r.send(1)
			}
		}
	})
}

// The holder of the token may close the connection, which waits for every call of Read.
// So the reader must not wait for the token within Read.
func TestAReaderWaitsForTheTokenOutsideOfTheSource(t *testing.T) {
	p := newPipe()
	r := New(p, nil)
	read := make(chan int)
	r.Begin()
	go func() {
		n, _ := r.Read(p)
		read <- n
	}()
	nettest.Until(t, r.Enter) // the reader waits
	p.change(func() { p.octets = 1 })
	nettest.Until(t, func() bool { return p.within.Load() == 0 })
	r.Exit(0, false)
	if n := nettest.Await(t, read); n != 1 {
		t.Errorf("the reader has read %d octets, expected 1", n)
	}
	r.End()
}

// The reader returns the end of the stream while a visitor has the token, and also when a
// visitor has found the end.
func TestAReaderEnds(t *testing.T) {
	in(t, func(t *testing.T) {
		r := newRig(t, nil)
		r.Enter()
		r.pipe.change(func() { r.pipe.closed = true })
		r.Exit(0, true)
		if err := nettest.Await(t, r.done); !errors.Is(err, net.ErrClosed) {
			t.Errorf("closed: %v", err)
		}
		r = newRig(t, nil)
		r.Enter()
		r.Exit(1, true)
		r.InterruptReader()
		if err := nettest.Await(t, r.done); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("interrupted: %v", err)
		}
		r = newRig(t, nil)
		r.pipe.change(func() { r.pipe.end = io.EOF })
		if err := nettest.Await(t, r.done); err != io.EOF {
			t.Errorf("the end: %v", err)
		}
	})
}

// In a program of one processor nobody leads, and the reader lets others run before it
// waits, if that pays.
func TestAReaderOfOneProcessorYields(t *testing.T) {
	in(t, func(t *testing.T) {
		yields, answer := 0, false
		var r *rig
		r = newRig(t, func() {
			if yields++; answer {
				r.pipe.octets++
			}
		})
		for range 4 * minVisits {
			if r.Lead(t.Context(), none) {
				t.Fatal("somebody leads")
			}
			r.send(1)
		}
		if yields == 0 || r.State() == Free {
			t.Errorf("%d yields, %v", yields, r.State())
		}
		before := r.got
		r.yielder.credit, answer = yieldCredit, true
		if r.send(1); r.got < before+2 {
			t.Error("what came while others ran was not read")
		}
		answer = false
	})
}
