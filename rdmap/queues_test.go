package rdmap

import "testing"

// Both queues keep the order, tell when they are full, and go round.
func TestQueuesKeepTheOrderOfRequests(t *testing.T) {
	var in requestQueue
	var out responseQueue
	in.init(3)
	out.init(3)
	var r request
	var p pending
	if in.front(&r) || out.front(&p) || in.full() {
		t.Fatal("empty queues have a front or are full")
	}
	pushed, popped := uint32(0), uint32(0)
	for range 5 {
		for in.len() < 3 {
			if in.full() {
				t.Fatalf("full with %d of 3", in.len())
			}
			pushed++
			in.push(&request{length: int(pushed)})
			out.push(&pending{id: pushed})
		}
		if !in.full() || out.len() != 3 {
			t.Fatalf("not full with %d and %d of 3", in.len(), out.len())
		}
		for range 2 {
			popped++
			if !in.front(&r) || !out.front(&p) || r.length != int(popped) || p.id != popped {
				t.Fatalf("%d and %d are first, want %d", r.length, p.id, popped)
			}
			in.pop()
			out.pop()
		}
	}
}
