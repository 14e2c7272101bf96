package rdmap

import (
	"runtime"
	"testing"
)

// One goroutine pushes, another pops: the order holds, while the ring grows too.
func TestFIFOBetweenTwoGoroutines(t *testing.T) {
	const n = 100_000
	var f fifo[int]
	f.init(0)
	room := make(chan struct{}, 100)
	go func() {
		for i := range n {
			room <- struct{}{}
			f.push(&i)
		}
	}()
	for i := range n {
		<-room
		var e *int
		for e = f.front(); e == nil; e = f.front() {
			runtime.Gosched() // room is made before the element is pushed
		}
		if *e != i {
			t.Fatalf("element %d is %d", i, *e)
		}
		f.pop()
	}
	if f.front() != nil || f.len() != 0 {
		t.Errorf("%d elements are left", f.len())
	}
}

// The counts may pass the largest number.
func TestFIFOWrapsAround(t *testing.T) {
	var f fifo[int]
	f.init(2)
	f.popped.Store(1<<32 - 3)
	f.pushed.Store(1<<32 - 3)
	for i := range 5 {
		f.push(&i)
	}
	for i := range 5 {
		if e := f.front(); e == nil || *e != i || f.len() != 5-i {
			t.Fatalf("element %d is %v, of %d", i, e, f.len())
		}
		f.pop()
	}
}
