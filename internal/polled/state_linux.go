// This file decides who receives what arrives while a read waits. It is a pure function of
// state and event, tested edge by edge, like the table of mpa/internal/turns for connections
// that Go's network poller knows.

package polled

// A state says who receives what arrives while a read waits.
type state int32

const (
	watched state = iota // the poller: it receives, or wakes the read
	leased               // visitors: octets wake no goroutine
	closed               // nobody
)

// An event may change the state.
type event int

const (
	arrival event = iota // epoll reports octets
	visit                // somebody has come to receive
	leave                // the visitors have left
	expiry               // there was no visitor for a whole tick, and none has the descriptor
	rest                 // somebody has received, and left the rest to the read
	closing              // the connection is being closed
)

// An action is what an event asks for.
type action int

const (
	nothing action = iota
	receive        // the poller receives, or wakes the read
	follow         // the timer looks whether visitors still come
	watch          // epoll is to report octets
	wake           // the read goes on; if it does not wait, its next wait is over at once
)

// next is the state after e, and what has to be done.
func next(s state, e event) (state, action) {
	switch {
	case s == closed:
		return closed, nothing
	case e == closing:
		return closed, wake
	case e == rest: // visitors would not find it
		return watched, wake
	case e == arrival && s == watched:
		return watched, receive
	case e == visit && s == watched:
		return leased, follow
	case (e == leave || e == expiry) && s == leased:
		return watched, watch
	}
	return s, nothing
}

var stateNames = [...]string{"watched", "leased", "closed"}

func (s state) String() string { return stateNames[s] }

var eventNames = [...]string{"arrival", "visit", "leave", "expiry", "rest", "closing"}

func (e event) String() string { return eventNames[e] }

var actionNames = [...]string{"nothing", "receive", "follow", "watch", "wake"}

func (a action) String() string { return actionNames[a] }
