// This file is a queue between two goroutines.

package rdmap

import "sync/atomic"

// A fifo is a queue between two goroutines, in a ring that grows: one at a time pushes,
// and one at a time looks at the front and pops.
//
// Locking: there is none. Each side changes its own count and its own elements: those that
// it may see are those that the other has counted. A ring that has become too small is
// copied by the side that pushes; what the other side still reads in the old one stays.
type fifo[T any] struct {
	ring   atomic.Pointer[[]T] // its length is a power of two
	popped atomic.Uint32       // elements
	pushed atomic.Uint32
}

// firstRoom is how many elements there is room for at first: most streams need no more.
const firstRoom = 16

// init makes room for n elements, or for the first of them.
func (f *fifo[T]) init(n int) {
	size := 1
	for size < min(n, firstRoom) {
		size *= 2
	}
	ring := make([]T, size)
	f.ring.Store(&ring)
}

// len is the number of elements, at a moment of the call for others than the two.
func (f *fifo[T]) len() int {
	popped := f.popped.Load() // first: it is never ahead of pushed
	return int(f.pushed.Load() - popped)
}

// at is element n, counted from the first ever.
func (f *fifo[T]) at(n uint32) *T {
	ring := *f.ring.Load()
	return &ring[n&uint32(len(ring)-1)]
}

func (f *fifo[T]) push(e *T) {
	*f.back() = *e
	f.commit()
}

// back is the place of the next element, which is what was there before. commit pushes it.
func (f *fifo[T]) back() *T {
	if f.len() == len(*f.ring.Load()) {
		f.grow()
	}
	return f.at(f.pushed.Load())
}

func (f *fifo[T]) commit() { f.pushed.Add(1) }

// grow doubles the ring.
func (f *fifo[T]) grow() {
	old := *f.ring.Load()
	ring := make([]T, 2*len(old))
	for n := f.popped.Load(); n != f.pushed.Load(); n++ {
		ring[n&uint32(len(ring)-1)] = *f.at(n)
	}
	f.ring.Store(&ring)
}

// front is the oldest element, nil if there is none. It is valid until pop.
func (f *fifo[T]) front() *T {
	n := f.popped.Load()
	if n == f.pushed.Load() {
		return nil
	}
	return f.at(n)
}

// ahead is the oldest element but n, nil if there are no more.
func (f *fifo[T]) ahead(n int) *T {
	at := f.popped.Load()
	if f.pushed.Load()-at <= uint32(n) {
		return nil
	}
	return f.at(at + uint32(n))
}

func (f *fifo[T]) pop() { f.popped.Add(1) }
