package main

import (
	gocontext "context"
	"encoding/binary"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// This file has an engine in a test, used as the library uses it: by its verbs and
// commands, and by queues in memory. Tests of a package with cgo cannot name the types of
// C, so they get them from what has them.

// argument is a zero argument of a verb or command.
func argument[T any](func(*T) syscall.Errno) *T { return new(T) }

// like is a zero value of the type that p points to.
func like[T any](*T) *T { return new(T) }

// array is an array of n of what p points to.
func array[T any](_ *T, n int) *T { return &make([]T, n)[0] }

// assign assigns a number to a field of C.
func assign[T ~int32 | ~uint32 | ~uint64 | ~uint8 | ~uint16](field *T, n uint64) { *field = T(n) }

// address is where something is, as fields of C have it. It stays there.
func address[T any](p *T) uint64 {
	kept = append(kept, p)
	return uint64(uintptr(unsafe.Pointer(p)))
}

var kept []any // not on a stack, which moves

var engineMu sync.Mutex // one engine at a time: it is the process's

// anEngine starts an engine of a persona for a test.
func anEngine(t *testing.T, rc bool) {
	t.Helper()
	engineMu.Lock()
	t.Cleanup(engineMu.Unlock)
	if errno := start(rc, 1); errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(stop)
	t.Cleanup(func() {
		if failed.Load() && !expectsDefect {
			t.Error("the engine has failed")
		}
		expectsDefect = false
	})
}

var expectsDefect bool // of the test that has the engine

// stop ends the engine, with what a test left open.
func stop() {
	for _, id := range identifiers.all() {
		id.destroy()
	}
	for _, q := range queuePairs.all() {
		a := argument(destroyQP)
		assign(&a.handle, uint64(q.handle))
		_ = destroyQP(a) // it fails only if the test has destroyed it
	}
	if failed.Load() {
		<-theDevice.Load().settled // so that nothing of this happens to the next engine
	} else {
		_ = rnic.Close()
	}
	calls.mu.Lock()
	calls.listeners = nil // the RNIC has closed them
	calls.mu.Unlock()
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for _, p := range ports.all {
		_ = unix.Close(p.socket)
	}
	ports.all = nil
}

func must(t testing.TB, errno syscall.Errno) {
	t.Helper()
	if errno != 0 {
		t.Fatal(errno)
	}
}

// A bed is what queue pairs of a test are made of.
type bed struct {
	t           testing.TB
	context, pd uint32
	cq          *completionQueue
	cqHandle    uint32
	events      [2]int // of the context: a pipe
}

func newBed(t testing.TB) *bed {
	b := &bed{t: t}
	if err := syscall.Pipe2(b.events[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = syscall.Close(b.events[0]), syscall.Close(b.events[1]) })
	open := argument(openContext)
	assign(&open.event_fd, uint64(b.events[1]))
	must(t, openContext(open))
	b.context = uint32(open.handle)
	pd := argument(allocDomain)
	must(t, allocDomain(pd))
	b.pd = uint32(pd.handle)
	b.cqHandle = b.newCQ(64)
	b.cq = completionQueues.get(b.cqHandle)
	return b
}

// newCQ makes a completion queue of a power of two entries.
func (b *bed) newCQ(entries int) uint32 { return b.newCQOf(-1, entries) }

// newCQOf makes one whose events ring a bell.
func (b *bed) newCQOf(bell, entries int) uint32 {
	b.t.Helper()
	a := argument(createCQ)
	assign(&a.context, uint64(b.context))
	a.queue = like(a.queue)
	a.queue.entries = array(a.queue.entries, entries)
	assign(&a.queue.mask, uint64(entries-1))
	assign(&a.queue.event_fd, uint64(bell))
	must(b.t, createCQ(a))
	return uint32(a.handle)
}

// sendSlot and receiveSlot are octets of an entry with one element.
const (
	sendSlot    = 72
	receiveSlot = 32
	queueDepth  = 16
)

// newQP makes a queue pair.
func (b *bed) newQP() *queuePair { return b.newQPOf(b.cqHandle, b.cqHandle) }

// newQPOf makes one of two completion queues.
func (b *bed) newQPOf(sends, receives uint32) *queuePair {
	b.t.Helper()
	a := argument(createQP)
	assign(&a.context, uint64(b.context))
	assign(&a.pd, uint64(b.pd))
	assign(&a.send_cq, uint64(sends))
	assign(&a.recv_cq, uint64(receives))
	a.sends, a.send_sges, a.receives, a.receive_sges = queueDepth, 1, queueDepth, 1
	a.send, a.receive = like(a.send), like(a.receive)
	a.send.entries, a.receive.entries = array(a.send.entries, queueDepth*sendSlot), array(a.receive.entries, queueDepth*receiveSlot)
	a.send.mask, a.receive.mask, a.send.stride, a.receive.stride = queueDepth-1, queueDepth-1, sendSlot, receiveSlot
	must(b.t, createQP(a))
	return queuePairs.get(uint32(a.handle))
}

// The states and the attributes of ibv_modify_qp.
const (
	stateReset, stateInit, stateRTR, stateRTS = 0, 1, 2, 3

	maskState = 1 << 0
	maskInit  = maskState | 1<<3 | 1<<4 | 1<<5                          // access flags, P_Key index, port
	maskRTR   = maskState | 1<<7 | 1<<8 | 1<<12 | 1<<15 | 1<<17 | 1<<20 // address, MTU, PSN, RNR timer, Reads, number
	maskRTS   = maskState | 1<<9 | 1<<10 | 1<<11 | 1<<13 | 1<<16        // timeout, retries, RNR retries, Reads, PSN
)

func (q *queuePair) changeTo(t *testing.T, change func(*attributes), state, mask uint64) {
	t.Helper()
	q.mu.Lock()
	want := q.attributes
	q.mu.Unlock()
	a := argument(modifyQP)
	assign(&want.qp_state, state)
	local := netip.IPv4Unspecified()
	var peer *netip.Addr
	if change != nil {
		var c attributes
		change(&c)
		assign(&want.dest_qp_num, uint64(c.dest))
		assign(&want.rq_psn, uint64(c.recvPSN))
		assign(&want.sq_psn, uint64(c.sendPSN))
		local, peer = c.local, &c.peer
	}
	if peer != nil && peer.IsValid() {
		want.ah_attr.is_global = 1
		*(*[16]byte)(unsafe.Pointer(&want.ah_attr.grh.dgid)) = peer.As16()
		*(*[16]byte)(unsafe.Pointer(&a.source)) = local.As16()
	}
	assign(&a.handle, uint64(q.handle))
	assign(&a.mask, mask)
	a.attributes = unsafe.Pointer(&want)
	must(t, modifyQP(a))
}

// attributes are those that tell a queue pair its peer.
type attributes struct {
	dest, sendPSN, recvPSN uint32
	local, peer            netip.Addr
}

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// ready moves a queue pair to RTR, and to RTS.
func (q *queuePair) ready(t *testing.T, a attributes) {
	t.Helper()
	if !a.peer.IsValid() {
		a.local, a.peer = loopback, loopback
	}
	fill := func(to *attributes) { *to = a }
	q.changeTo(t, nil, stateInit, maskInit)
	q.changeTo(t, fill, stateRTR, maskRTR)
	q.changeTo(t, fill, stateRTS, maskRTS)
}

// connected waits until the queue pair has a stream.
func (q *queuePair) awaitStream(t *testing.T) {
	t.Helper()
	ctx, cancel := gocontext.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := q.qp.WaitState(ctx, verbs.RTS); err != nil {
		t.Fatalf("queue pair %#x: %v", q.number, err)
	}
}

// destroy destroys a queue pair.
func (q *queuePair) destroy(t *testing.T) {
	t.Helper()
	a := argument(destroyQP)
	assign(&a.handle, uint64(q.handle))
	must(t, destroyQP(a))
}

// A stranger is an RNIC of somebody else's, on the same machine.
type stranger struct {
	t  *testing.T
	pd *verbs.PD
	cq *verbs.CQ
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	r, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	s := &stranger{t: t}
	if s.pd, err = r.AllocPD(); err != nil {
		t.Fatal(err)
	}
	if s.cq, err = r.CreateCQ(verbs.CQConfig{Entries: 64}); err != nil {
		t.Fatal(err)
	}
	return s
}

// dial asks for a connection with private data.
func (s *stranger) dial(ctx gocontext.Context, to netip.AddrPort, data []byte) (*cm.Conn, error) {
	qp, err := s.pd.CreateQP(verbs.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, SendDepth: 4, RecvDepth: 4, Extensions: true})
	if err != nil {
		s.t.Error(err)
		return nil, err
	}
	return cm.Dial(ctx, qp, "tcp", to.String(), cm.Params{PrivateData: data, MPA: mpa.Config{PeerToPeer: true, IRD: 1, ORD: 1}})
}

// portOf is where a queue pair is reached.
func portOf(number uint32) netip.AddrPort { return netip.AddrPortFrom(loopback, uint16(number>>8)) }

// greet is a greeting's octets, as a peer writes them.
func greet(from, to, sendPSN, recvPSN uint32, knowsSend bool) []byte {
	b := []byte("weft")
	flags := uint32(0)
	if knowsSend {
		flags = 1
	}
	for _, v := range []uint32{flags, from, to, sendPSN, recvPSN} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	return b
}
