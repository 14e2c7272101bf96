package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/weft-rdma/weft/verbs"
)

// request writes request n of a send queue, with one element of 8 octets.
func (q *queuePair) request(n uint64, op uint8, flags uint8, sges uint16) {
	p := q.sends.slot(n)
	b := unsafe.Slice((*byte)(p), sendSlot)
	clear(b)
	*(*uint64)(p) = n
	b[8], b[9] = op, flags
	*(*uint16)(unsafe.Add(p, 10)) = sges
	*(*uint32)(unsafe.Add(p, 12)) = 0x11223344 // remote key
	*(*uint64)(unsafe.Add(p, 16)) = 0x1000     // remote address
	*(*uint64)(unsafe.Add(p, 24)) = 7          // operand
	*(*uint64)(unsafe.Add(p, 32)) = 9          // compare
	*(*uint32)(unsafe.Add(p, 40)) = 0x55667788 // immediate, or the key to invalidate
	*(*verbs.SGE)(unsafe.Add(p, 48)) = verbs.SGE{TO: 0x2000, STag: 5, Length: 8}
}

// TestRequestsBecomeThoseOfVerbs goes through the operations (enum weft_op).
func TestRequestsBecomeThoseOfVerbs(t *testing.T) {
	anEngine(t, true)
	q := newBed(t).newQP()
	const signaled, solicited, fence = 1, 2, 4
	for _, c := range []struct {
		what  string
		op    uint8
		flags uint8
		sges  uint16
		want  []verbs.Op
		check func(wrs []verbs.SendWR) bool
	}{
		{"send", 1, signaled, 1, []verbs.Op{verbs.OpSend}, func(w []verbs.SendWR) bool { return w[0].Flags == verbs.Signaled && w[0].SGL[0].Length == 8 }},
		{"send solicited", 1, solicited, 0, []verbs.Op{verbs.OpSendSE}, func(w []verbs.SendWR) bool { return w[0].Flags == 0 && len(w[0].SGL) == 0 }},
		{"send with immediate", 2, signaled, 1, []verbs.Op{verbs.OpImmediate, verbs.OpSend}, func(w []verbs.SendWR) bool {
			return w[0].Flags == 0 && w[0].ID&partial != 0 && w[0].Immediate == [8]byte{0x88, 0x77, 0x66, 0x55, 0xFF, 0xFF, 0xFF, 0xFF} && w[1].Flags == verbs.Signaled
		}},
		{"send with invalidate", 3, 0, 1, []verbs.Op{verbs.OpSendInvalidate}, func(w []verbs.SendWR) bool { return w[0].Invalidate == 0x55667788 }},
		{"write", 4, fence, 1, []verbs.Op{verbs.OpWrite}, func(w []verbs.SendWR) bool {
			return w[0].Flags == verbs.ReadFence && w[0].Remote == verbs.Remote{STag: 0x11223344, TO: 0x1000}
		}},
		{"write with immediate", 5, signaled | solicited, 1, []verbs.Op{verbs.OpWrite, verbs.OpImmediateSE}, func(w []verbs.SendWR) bool {
			return w[0].Flags == 0 && w[0].ID&partial != 0 && w[1].Immediate == [8]byte{0x88, 0x77, 0x66, 0x55, 0, 0, 0, 8}
		}},
		{"read", 6, signaled, 1, []verbs.Op{verbs.OpRead}, func(w []verbs.SendWR) bool { return w[0].SGL[0].STag == 5 }},
		{"read of nothing", 6, signaled, 0, []verbs.Op{verbs.OpRead}, func(w []verbs.SendWR) bool { return len(w[0].SGL) == 1 && w[0].SGL[0].Length == 0 }},
		{"compare and swap", 7, signaled, 1, []verbs.Op{verbs.OpCmpSwap}, func(w []verbs.SendWR) bool { return w[0].Atomic.Data == 7 && w[0].Atomic.Compare == 9 }},
		{"fetch and add", 8, signaled, 1, []verbs.Op{verbs.OpFetchAdd}, func(w []verbs.SendWR) bool { return w[0].Atomic.Data == 7 }},
		{"invalidate", 10, signaled, 0, []verbs.Op{verbs.OpInvalidate}, func(w []verbs.SendWR) bool { return w[0].Invalidate == 0x55667788 }},
	} {
		const n = 3
		q.request(n, c.op, c.flags, c.sges)
		var wrs [partsOf]verbs.SendWR
		got := wrs[:q.sends.translate(wrs[:], n)]
		if len(got) != len(c.want) {
			t.Errorf("%s: %d requests, expected %d", c.what, len(got), len(c.want))
			continue
		}
		for i := range got {
			if got[i].Op != c.want[i] || got[i].ID&^partial != n {
				t.Errorf("%s: part %d is %v of %#x, expected %v", c.what, i, got[i].Op, got[i].ID, c.want[i])
			}
		}
		if !c.check(got) {
			t.Errorf("%s: %+v", c.what, got)
		}
	}
}

// postSend posts request n.
func (q *queuePair) postSend(n uint64, op, flags uint8, sges uint16) {
	q.request(n, op, flags, sges)
	atomic.StoreUint64((*uint64)(&q.sends.queue.tail), n+1)
	q.takeSends()
}

// postReceive writes receive n, without a word to the engine.
func (q *queuePair) postReceive(n uint64) {
	p := unsafe.Add(unsafe.Pointer(q.receives.queue.entries), uintptr(n%queueDepth)*receiveSlot)
	clear(unsafe.Slice((*byte)(p), receiveSlot))
	*(*uint64)(p) = n
	atomic.StoreUint64((*uint64)(&q.receives.queue.tail), n+1)
}

// next waits for the next completion of a queue.
func (q *completionQueue) next(t *testing.T) (id uint64, immediate uint32) {
	t.Helper()
	head := uint64(q.queue.head)
	for end := time.Now().Add(time.Minute); atomic.LoadUint64((*uint64)(&q.queue.tail)) == head; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("completion %d does not come", head)
		}
	}
	c := entry(q.queue, head)
	if c.status != 0 {
		t.Fatalf("completion %d has status %d", head, c.status)
	}
	id, immediate = uint64(c.id), uint32(c.immediate)
	atomic.StoreUint64((*uint64)(&q.queue.head), head+1)
	return id, immediate
}

// TestReceivesKeepTheirOrderWithImmediateData has receives posted while messages wait for
// them: the receive that a message in front of a Send has used is the Send's, however
// busy the program is posting others.
func TestReceivesKeepTheirOrderWithImmediateData(t *testing.T) {
	anEngine(t, true)
	b := newBed(t)
	from, to := b.newQPOf(b.newCQ(64), b.cqHandle), b.newQP()
	from.ready(t, attributes{dest: to.number, sendPSN: 1, recvPSN: 2})
	to.ready(t, attributes{dest: from.number, sendPSN: 2, recvPSN: 1})
	from.awaitStream(t)
	to.retriesOfPeer(retriesForEver)
	const messages, sendImmediate, signaled = 500, 2, 1
	var received atomic.Uint64
	done := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() { // the program's other threads
		for {
			select {
			case <-done:
				return
			default:
				to.takeReceives()
				runtime.Gosched()
			}
		}
	})
	busy.Go(func() {
		for n := range uint64(messages) {
			for n >= received.Load()+2 {
				select {
				case <-done:
					return
				default:
					runtime.Gosched()
				}
			}
			to.postReceive(n)
			to.takeReceives()
		}
	})
	defer busy.Wait()
	defer close(done)
	for n := range uint64(messages) {
		from.postSend(n, sendImmediate, signaled, 0)
		if id, immediate := b.cq.next(t); id != n || immediate != 0x55667788 {
			t.Fatalf("message %d completed receive %d with immediate data %#x", n, id, immediate)
		}
		received.Store(n + 1)
		from.sends.to.next(t)
	}
}

// A request that verbs refuse completes in error, in its place, signaled or not.
func TestARequestThatCannotBePostedFails(t *testing.T) {
	const badOp = 2 // IBV_WC_LOC_QP_OP_ERR
	for _, rc := range []bool{false, true} {
		for _, flags := range []uint8{0, 1} {
			anEngineFor(t, fmt.Sprintf("rc %v, flags %d", rc, flags), rc, func(t *testing.T) {
				b := newBed(t)
				q := b.newQP()
				post := func(n uint64, flags uint8) *verbs.SGE {
					q.request(n, 8, flags, 1)
					atomic.AddUint64((*uint64)(&q.sends.queue.tail), 1)
					return (*verbs.SGE)(unsafe.Add(q.sends.slot(n), 48))
				}
				post(0, 1)
				post(1, flags).Length = 4 // an atomic has 8
				post(2, 1)
				q.takeSends()
				r := &ring{completionQueue: b.cq}
				var got []taken
				for end := time.Now().Add(time.Minute); len(got) < 3 && time.Now().Before(end); runtime.Gosched() {
					got = append(got, r.take()...)
				}
				if want := []taken{{0, flushed}, {1, badOp}, {2, flushed}}; !slices.Equal(got, want) {
					t.Errorf("%v, expected %v", got, want)
				}
			})
		}
	}
}

// anEngineFor is anEngine for a part of a test.
func anEngineFor(t *testing.T, name string, rc bool, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) {
		anEngine(t, rc)
		f(t)
	})
}
