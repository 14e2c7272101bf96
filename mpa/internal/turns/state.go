// This file is the table of states and events: which goroutine waits for octets.

package turns

// A State says which goroutine waits for octets.
type State int32

const (
	Reading State = iota // the reader does, or receives
	Wanted               // the same, and somebody sleeps until there are octets: the reader may not sleep
	Free                 // nobody: the reader sleeps, and the next visitor leads
	Led                  // the leader does; the reader sleeps
	LedLast              // the same, and somebody else sleeps: the reader is next
	Lapsed               // the reader, which wakes up because nobody came
	Closed               // nobody waits
)

// An Event is what changes it.
type Event int

const (
	Sleep   Event = iota // the reader would like to sleep
	Wake                 // the reader is awake
	Found                // octets have been read, by any goroutine
	Come                 // a visitor would like to lead
	Done                 // the leader has found something
	CallOff              // the leader was interrupted, or its wait has become long
	Quit                 // a visitor is about to sleep, or to do something else
	Recall               // something is left to the reader
	Neglect              // there was no visitor for a while
	Close                // the connection is being closed
)

// next is the state after e. Most events change few states; the others stay.
func next(s State, e Event) State {
	switch {
	case s == Closed:
		return Closed
	case e == Close:
		return Closed
	case e == Sleep && s == Reading:
		return Free
	case e == Wake && s == Lapsed:
		return Reading
	case e == Found && s == Wanted:
		return Reading
	case e == Neglect && s == Free:
		return Lapsed
	case e == Recall && s == Free:
		return Reading // a leader finds what there is by itself
	case e == Done && s == Led:
		return Free
	case e == Done && s == LedLast, e == CallOff && s.led():
		return Reading
	case e == Come && s == Free:
		return Led
	case e == Quit && s == Free:
		return Reading
	case e == Come || e == Quit:
		return s.awaited()
	}
	return s
}

// awaited is s after another goroutine goes to sleep until there are octets.
func (s State) awaited() State {
	switch s {
	case Reading, Lapsed:
		return Wanted
	case Led:
		return LedLast
	}
	return s
}

// led reports that there is a leader.
func (s State) led() bool { return s == Led || s == LedLast }

// asleep reports that the reader sleeps.
func (s State) asleep() bool { return s == Free || s.led() }

var stateNames = [...]string{"Reading", "Wanted", "Free", "Led", "LedLast", "Lapsed", "Closed"}

func (s State) String() string { return stateNames[s] }

var eventNames = [...]string{"Sleep", "Wake", "Found", "Come", "Done", "CallOff", "Quit", "Recall", "Neglect", "Close"}

func (e Event) String() string { return eventNames[e] }
