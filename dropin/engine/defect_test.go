package main

import (
	gocontext "context"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// The verbs (enum weft_verb in c/engine.h).
const (
	verbOpen, verbClose, verbAllocPD, verbFreePD, verbRegister, verbDeregister = 1, 2, 3, 4, 5, 7
	verbCreateCQ, verbDestroyCQ, verbCreateQP, verbModifyQP, verbDestroyQP     = 10, 12, 17, 18, 20
	verbNextEvent                                                              = 21
)

const deviceFatal = 8 // IBV_EVENT_DEVICE_FATAL

// call executes a verb as the library does, and has to come back.
func call[N ~uint32, R ~int32](t *testing.T, exported func(N, unsafe.Pointer) R, verb uint32, a unsafe.Pointer) syscall.Errno {
	t.Helper()
	done := make(chan syscall.Errno, 1)
	go func() { done <- syscall.Errno(exported(N(verb), a)) }()
	select {
	case errno := <-done:
		return errno
	case <-time.After(time.Minute):
		buf := make([]byte, 1<<20)
		t.Fatalf("verb %d does not return\n%s", verb, buf[:runtime.Stack(buf, true)])
		return 0
	}
}

// A faultyConn is a connection with a defect.
type faultyConn struct {
	net.Conn
	broken atomic.Bool   // the next Read panics, when something has arrived
	held   chan struct{} // writes wait until it is closed
	holds  atomic.Bool
}

func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.broken.Load() {
		panic("a test of Read")
	}
	return n, err
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if c.holds.Load() {
		<-c.held
	}
	return c.Conn.Write(b)
}

// A faultyLog panics when a queue pair changes its state, under the queue pair's lock.
type faultyLog struct {
	slog.Handler
	broken *atomic.Bool
}

func (faultyLog) Enabled(gocontext.Context, slog.Level) bool { return true }
func (l faultyLog) WithAttrs([]slog.Attr) slog.Handler       { return l }

func (l faultyLog) Handle(_ gocontext.Context, r slog.Record) error {
	if l.broken.Load() && r.Message == "state" {
		panic("a test of the log")
	}
	return nil
}

// anEngineOfFaultyLog starts an engine whose log can be broken.
func anEngineOfFaultyLog(t *testing.T) (broken *atomic.Bool) {
	t.Helper()
	anEngine(t, false)
	expectsDefect = true
	broken = new(atomic.Bool)
	t.Cleanup(func() { broken.Store(false) }) // what the defect has left behind is not the next engine's
	_ = rnic.Close()
	var err error
	if rnic, err = verbs.Open(verbs.Config{Logger: slog.New(faultyLog{broken: broken})}); err != nil {
		t.Fatal(err)
	}
	return broken
}

// accepts has a stranger accept one connection, and returns its end.
func (s *stranger) accepts() (address string, accepted <-chan *verbs.QP) {
	s.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { ln.Close() })
	qp, err := s.pd.CreateQP(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, SendDepth: 16, RecvDepth: 16, Extensions: true})
	if err != nil {
		s.t.Fatal(err)
	}
	done := make(chan *verbs.QP, 1)
	go func() {
		defer close(done)
		nc, err := ln.Accept()
		if err != nil {
			return
		}
		cfg := mpa.Config{PeerToPeer: true, IRD: 4, ORD: 4}
		r, err := cm.Receive(s.t.Context(), nc, cfg)
		if err == nil {
			_, err = r.Accept(s.t.Context(), qp, cm.Params{MPA: cfg})
		}
		if err != nil {
			s.t.Error(err)
			return
		}
		done <- qp
	}()
	return ln.Addr().String(), done
}

// joins connects a queue pair to a stranger, over what f makes of the connection.
func (q *queuePair) joins(t *testing.T, f func(net.Conn) net.Conn) (peer *verbs.QP) {
	t.Helper()
	to, accepted := newStranger(t).accepts()
	nc, err := newDialer().Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := connectOver(t.Context(), q.qp, f(nc), cm.Params{MPA: config(4, 4)})
	if err != nil {
		t.Fatal(err)
	}
	q.connected(conn, func() {})
	if peer = <-accepted; peer == nil {
		t.Fatal("the peer has not accepted")
	}
	return peer
}

func sound(nc net.Conn) net.Conn { return nc }

// register registers memory of the program.
func (b *bed) register(octets int) (handle uint32) {
	b.t.Helper()
	a := argument(register)
	assign(&a.pd, uint64(b.pd))
	assign(&a.addr, address(&make([]byte, octets)[0]))
	assign(&a.length, uint64(octets))
	assign(&a.access, 1)
	must(b.t, register(a))
	return uint32(a.handle)
}

// awaitFailure waits until the program is told that the device has failed.
func (b *bed) awaitFailure(t *testing.T) {
	t.Helper()
	eventually(t, "the failure", func() bool {
		c := contexts.get(b.context)
		c.mu.Lock()
		defer c.mu.Unlock()
		return failed.Load() && len(c.events) > 0
	})
}

// all takes n completions, as a program does that polls.
func (r *ring) all(t *testing.T, n int) (got []taken) {
	t.Helper()
	eventually(t, fmt.Sprintf("%d completions", n), func() bool {
		got = append(got, r.take()...)
		if len(got) < n {
			r.progress()
		}
		return len(got) >= n
	})
	r.progress()
	return append(got, r.take()...)
}

// fatals takes all events, and returns how many say that the device has failed.
func (b *bed) fatals() (n int) {
	b.t.Helper()
	for {
		switch kind, owner, errno := b.event(); {
		case errno != 0:
			return n
		case kind != deviceFatal || owner != 0:
			b.t.Errorf("event %d about %d", kind, owner)
		default:
			n++
		}
	}
}

// destroyAll destroys what a bed and queue pairs consist of, in the order of programs.
func (b *bed) destroyAll(t *testing.T, regions []uint32, pairs ...*queuePair) {
	t.Helper()
	a := argument(destroyQP)
	destroy := func(what string, verb, handle uint32) {
		t.Helper()
		assign(&a.handle, uint64(handle))
		if errno := call(t, weftVerb, verb, unsafe.Pointer(a)); errno != 0 {
			t.Errorf("destroying %s: %v", what, errno)
		}
	}
	for _, q := range pairs {
		destroy("a queue pair", verbDestroyQP, q.handle)
	}
	for _, r := range regions {
		destroy("a region", verbDeregister, r)
	}
	destroy("a completion queue", verbDestroyCQ, b.cqHandle)
	destroy("a domain", verbFreePD, b.pd)
	if n := b.fatals(); n != 0 {
		t.Errorf("%d more events of the device", n)
	}
	destroy("a context", verbClose, b.context)
}

// refusesAll calls verbs that need the device.
func (b *bed) refusesAll(t *testing.T) {
	t.Helper()
	for verb, a := range map[uint32]unsafe.Pointer{
		verbOpen: unsafe.Pointer(argument(openContext)), verbAllocPD: unsafe.Pointer(argument(allocDomain)),
		verbRegister: unsafe.Pointer(argument(register)), verbCreateCQ: unsafe.Pointer(argument(createCQ)),
		verbCreateQP: unsafe.Pointer(argument(createQP)), verbModifyQP: unsafe.Pointer(argument(modifyQP)),
	} {
		if errno := call(t, weftVerb, verb, a); errno != syscall.EIO {
			t.Errorf("verb %d: %v, expected %v", verb, errno, syscall.EIO)
		}
	}
}

// TestAPanicBelowTheEngineFailsTheDevice has the goroutine that receives panic while
// requests are outstanding in both queues, some of which have completed.
func TestAPanicBelowTheEngineFailsTheDevice(t *testing.T) {
	anEngine(t, false)
	expectsDefect = true
	b := newBed(t)
	region := b.register(64)
	q, other := b.newQP(), b.newQP()
	broken := &faultyConn{held: make(chan struct{})}
	peer := q.joins(t, func(nc net.Conn) net.Conn {
		broken.Conn = nc
		return broken
	})
	otherPeer := other.joins(t, sound)
	defer close(broken.held)
	defer broken.broken.Store(false)
	r := &ring{completionQueue: b.cq}
	const write, signaled = 4, 1
	q.postSend(0, write, signaled, 0) // of no octets
	if got := r.all(t, 1); !slices.Equal(got, []taken{{0, 0}}) {
		t.Fatalf("%v, expected a success", got)
	}
	broken.holds.Store(true)
	for n := range uint64(3) {
		q.postSend(1+n, write, uint8(n%2), 0)
		q.postReceive(n)
	}
	q.takeReceives()
	other.postReceive(0)
	other.takeReceives()
	said := stderrOf(t, func() {
		broken.broken.Store(true)
		if err := peer.PostSend(verbs.SendWR{Op: verbs.OpSend}); err != nil {
			t.Error(err)
		}
		b.awaitFailure(t)
	})
	if !strings.Contains(said, "a test of Read, in engine.(*faultyConn).Read (defect_test.go:") || strings.Count(said, "\n") != 1 {
		t.Errorf("the user is told %q", said)
	}
	got := r.take()
	slices.SortStableFunc(got, func(a, b taken) int { return int(a.id) - int(b.id) })
	if want := []taken{{0, flushed}, {0, flushed}, {1, flushed}, {1, flushed}, {2, flushed}, {2, flushed}, {3, flushed}}; !slices.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	<-theDevice.Load().settled // verbs has completed all, too
	r.progress()
	if got := r.take(); len(got) > 0 {
		t.Errorf("%v came twice", got)
	}
	if n := b.fatals(); n != 1 {
		t.Errorf("%d events of the device, expected 1", n)
	}
	b.refusesAll(t)
	ctx, cancel := gocontext.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := otherPeer.WaitState(ctx, verbs.Error); err != nil {
		t.Errorf("the peer of another connection does not notice: %v", err)
	}
	b.destroyAll(t, []uint32{region}, q, other)
}

// TestWhatAPanicHasLockedHoldsNobodyUp has the goroutine that ends a stream panic under
// the lock of its queue pair.
func TestWhatAPanicHasLockedHoldsNobodyUp(t *testing.T) {
	broken := anEngineOfFaultyLog(t)
	b := newBed(t)
	region := b.register(64)
	q := b.newQP()
	peer := q.joins(t, sound)
	q.postReceive(0)
	q.takeReceives()
	broken.Store(true)
	peer.Abort()
	b.awaitFailure(t)
	unlocked := make(chan struct{})
	go func() {
		q.qp.State()
		close(unlocked)
	}()
	r := &ring{completionQueue: b.cq}
	if got := r.all(t, 1); !slices.Equal(got, []taken{{0, flushed}}) {
		t.Errorf("%v, expected one that is flushed", got)
	}
	if n := b.fatals(); n != 1 {
		t.Errorf("%d events of the device, expected 1", n)
	}
	b.refusesAll(t)
	b.destroyAll(t, []uint32{region}, q)
	select {
	case <-unlocked:
		t.Error("the queue pair is not locked: the test tests nothing")
	default:
	}
}

// A queue pair is being destroyed when the goroutine panics that this waits for.
func TestAPanicEndsTheDestructionOfAQueuePair(t *testing.T) {
	broken := anEngineOfFaultyLog(t)
	b := newBed(t)
	q := b.newQP()
	q.joins(t, sound)
	broken.Store(true)
	a := argument(destroyQP)
	assign(&a.handle, uint64(q.handle))
	if errno := call(t, weftVerb, verbDestroyQP, unsafe.Pointer(a)); errno != 0 || !failed.Load() {
		t.Errorf("%v, expected success by a failure", errno)
	}
}

// TestAFullQueueGetsAllThatIsFlushed has more outstanding than the completion queue takes.
func TestAFullQueueGetsAllThatIsFlushed(t *testing.T) {
	anEngine(t, false)
	expectsDefect = true
	b := newBed(t)
	small := b.newCQ(4)
	q := b.newQPOf(small, small)
	r := &ring{completionQueue: q.sends.to}
	for n := range uint64(queueDepth) {
		q.postReceive(n)
	}
	contained(func() { panic("a test") })
	if got := r.take(); len(got) != 4 {
		t.Errorf("%v, expected as many as there is room for", got)
	} else if got = append(got, r.all(t, queueDepth-4)...); len(got) != queueDepth {
		t.Errorf("%v, expected %d", got, queueDepth)
	} else {
		for i, c := range got {
			if c != (taken{uint64(i), flushed}) {
				t.Errorf("%v at %d", c, i)
			}
		}
	}
	q.postReceive(queueDepth) // by a thread that does not know yet
	if got := r.all(t, 1); !slices.Equal(got, []taken{{queueDepth, flushed}}) {
		t.Errorf("%v, expected what was posted last", got)
	}
	q.postSend(0, 4, 0, 0)
	if got := r.all(t, 1); !slices.Equal(got, []taken{{0, flushed}}) {
		t.Errorf("%v, expected what was posted last", got)
	}
}

// A program that waits for an event gets it, also if the goroutine that was to find it has
// gone.
func TestAProgramThatWaitsIsWokenByAPanic(t *testing.T) {
	for _, c := range []struct {
		leads  int
		before bool // an event has been raised before
	}{{0, false}, {1, false}, {1, true}} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			w := newWaited(t)
			expectsDefect = true
			r, want := &ring{completionQueue: w.receives.cq}, []taken{{0, flushed}}
			r.lead(c.leads)
			assign(&r.queue.armed, 2)
			w.q.postReceive(0)
			if c.before {
				r.putID(77, false)
				want = []taken{{77, 0}, {0, flushed}}
			}
			woken := make(chan struct{})
			go func() {
				defer close(woken)
				w.receives.event()
			}()
			contained(func() { panic("a test") })
			select {
			case <-woken:
			case <-time.After(time.Minute):
				t.Fatal("the program still waits")
			}
			if got := r.all(t, len(want)); !slices.Equal(got, want) {
				t.Errorf("%v, expected %v", got, want)
			}
		})
	}
}

// What is known of an rdma_cm_id is destroyed, and the program told why.
func TestIdentifiersHaveNoDeviceAfterAPanic(t *testing.T) {
	d := newDesk(t)
	expectsDefect = true
	d.channel("c")
	for _, id := range []string{"listens", "waits"} {
		must(t, d.create(id, "c"))
	}
	if said := d.do("listen", []string{"listens", "8"}); said != "" {
		t.Fatal(said)
	}
	at := d.localOfID("listens")
	contained(func() { panic("a test") })
	fd := d.fds["c"]
	got := map[uint32]bool{}
	for range d.ids {
		e := argument(d.channels["c"].next)
		resp := like(&new(cmEvent).resp)
		assign(&e.response, address(resp))
		must(t, command(fd, cmdGetEvent, e))
		if resp.event != deviceRemoval || syscall.Errno(-int32(resp.status)) != syscall.EIO {
			t.Errorf("event %d with status %d", resp.event, int32(resp.status))
		}
		got[uint32(resp.id)] = true
	}
	for name, id := range d.ids {
		if !got[id] {
			t.Errorf("%s gets no event", name)
		}
	}
	if nc, err := net.Dial("tcp", netip.AddrPortFrom(loopback, at.Port()).String()); err == nil {
		t.Error("the listener accepts")
		nc.Close()
	}
	if errno := d.create("new", "c"); errno != syscall.EIO {
		t.Errorf("creating another: %v", errno)
	}
	for name, id := range d.ids {
		if id == 0 {
			continue
		}
		a, reported := argument(destroyIdentifier), uint32(0)
		assign(&a.id, uint64(id))
		assign(&a.response, address(&reported))
		if errno := command(fd, cmdDestroy, a); errno != 0 {
			t.Errorf("destroying %s: %v", name, errno)
		}
	}
}
