package rdmap

import (
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// Both queues keep the order, report when they are full, and wrap around.
func TestQueuesKeepTheOrderOfRequests(t *testing.T) {
	var in requestQueue
	var out responseQueue
	in.init(3)
	out.init(3, 3)
	var r request
	var p pending
	if in.front(&r) || out.front(&p) || full(in.full()) {
		t.Fatal("empty queues have a front or are full")
	}
	pushed, popped := uint32(0), uint32(0)
	for range 5 {
		for in.len() < 3 {
			if full(in.full()) || full(out.full()) {
				t.Fatalf("full with %d of 3", in.len())
			}
			pushed++
			in.push(&request{length: int(pushed)})
			out.push(&pending{id: pushed})
		}
		if !full(in.full()) || !full(out.full()) {
			t.Fatalf("not full with %d of 3", in.len())
		}
		for range 2 {
			popped++
			if !in.front(&r) || !out.front(&p) || r.length != int(popped) || p.id != popped {
				t.Fatalf("%d and %d are first, want %d", r.length, p.id, popped)
			}
			in.pop()
			in.free()
			out.pop()
			if out.allReported() {
				t.Fatal("all are reported before the ULP was told")
			}
			out.reported()
		}
	}
}

func full(_ int, full bool) bool { return full }

// A limit that grows or shrinks keeps what is queued, in order, wherever in the
// ring it lies.
func TestALimitChangesUnderRequests(t *testing.T) {
	for _, tt := range []struct{ from, turns, held, to int }{
		{3, 0, 0, 5}, {3, 2, 3, 7}, {4, 3, 2, 1}, {4, 1, 4, 0}, {1, 0, 1, 2}, {0, 0, 0, 2},
	} {
		var in requestQueue
		var out responseQueue
		in.init(tt.from)
		out.init(tt.from, tt.from)
		for range tt.turns { // moves the head
			in.push(&request{})
			out.push(&pending{})
			in.pop()
			in.free()
			out.pop()
			if out.allReported() {
				t.Fatal("all are reported before the ULP was told")
			}
			out.reported()
		}
		for i := range tt.held {
			in.push(&request{length: i})
			out.push(&pending{id: uint32(i)})
		}
		in.resize(tt.to)
		out.resize(tt.to)
		for i := tt.held; i < tt.to; i++ {
			if full(in.full()) || full(out.full()) {
				t.Fatalf("%+v: full with %d", tt, i)
			}
			in.push(&request{length: i})
			out.push(&pending{id: uint32(i)})
		}
		if n, isFull := in.full(); n != tt.to || !isFull || !full(out.full()) {
			t.Errorf("%+v: the limit is %d, full: %v and %v", tt, n, isFull, full(out.full()))
		}
		var r request
		var p pending
		for i := range max(tt.held, tt.to) {
			if !in.front(&r) || !out.front(&p) || r.length != i || p.id != uint32(i) {
				t.Fatalf("%+v: %d and %d are first, expected %d", tt, r.length, p.id, i)
			}
			in.pop()
			in.free()
			out.pop()
			if out.allReported() {
				t.Fatal("all are reported before the ULP was told")
			}
			out.reported()
		}
		if in.len() != 0 || !out.allReported() {
			t.Errorf("%+v: %d are left, all reported: %v", tt, in.len(), out.allReported())
		}
	}
}

// drained is closed when the response to the peer's last request is on its way, and at
// once if there is no request.
func TestWaitingForTheQueueOfRequestsToBeEmpty(t *testing.T) {
	var in requestQueue
	in.init(2)
	nettest.Await(t, in.drained())
	in.push(&request{})
	in.push(&request{})
	first, second := in.drained(), in.drained()
	in.pop()
	in.free()
	select {
	case <-first:
		t.Fatal("told with a request in the queue")
	default:
	}
	in.pop()
	in.free()
	nettest.Await(t, first)
	nettest.Await(t, second)
}

// A request keeps its place until it is freed, also when the next one is at the front.
func TestARequestThatIsCutKeepsItsPlaceUntilItIsFreed(t *testing.T) {
	var q requestQueue
	var r request
	q.init(2)
	q.push(&request{length: 1})
	q.push(&request{length: 2})
	q.pop()
	if !full(q.full()) || !q.front(&r) || r.length != 2 {
		t.Errorf("full: %v, and %d is first; expected 2", full(q.full()), r.length)
	}
	q.pop()
	if q.front(&r) || !full(q.full()) {
		t.Error("there is a front, or room before it is freed")
	}
	q.free()
	if q.len() != 0 {
		t.Errorf("%d are left", q.len())
	}
}
