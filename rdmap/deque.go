// This file is a queue with two ends, for one goroutine.

package rdmap

// A deque is a queue with two ends in a ring that grows, never shrinks, and keeps
// what was in it. The zero value is empty.
type deque[T any] struct {
	ring    []T // its length is a power of two
	head, n int
}

// at is element i, counted from the front.
func (d *deque[T]) at(i int) *T { return &d.ring[(d.head+i)&(len(d.ring)-1)] }

// pushBack adds an element at the back, to be set.
func (d *deque[T]) pushBack() *T {
	if d.n == len(d.ring) {
		ring := make([]T, max(8, 2*len(d.ring)))
		for i := range d.n {
			ring[i] = *d.at(i)
		}
		d.ring, d.head = ring, 0
	}
	d.n++
	return d.at(d.n - 1)
}

func (d *deque[T]) popFront() {
	d.head = (d.head + 1) & (len(d.ring) - 1)
	d.n--
}

func (d *deque[T]) popBack() { d.n-- }
