// What a listener counts.

package cm

// Refusals are the connections that a Listener has closed before Accept returned them.
type Refusals struct {
	Full    uint64 // no place in start-up or the queue, and none could be taken from another
	Evicted uint64 // closed in favour of another
	Other   uint64 // not admitted, or ended during start-up
}

// Refusals returns what the listener has counted. It may be called at any time.
func (l *Listener) Refusals() Refusals {
	r := l.refusals.Refusals()
	return Refusals{Full: r.Full, Evicted: r.Evicted, Other: r.Other + r.NoMemory}
}
