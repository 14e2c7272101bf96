// This file is the state machine of a queue pair (Verbs §6.2).

package verbs

// A State is one of the five states of a queue pair (Verbs §6.2).
type State uint8

const (
	Idle      State = iota // no stream; work requests are accepted and held
	RTS                    // Ready To Send: the normal state, with a stream
	Closing                // a graceful close is under way
	Terminate              // the stream is being ended after an error
	Error                  // no stream; everything posted is flushed
)

var stateNames = [...]string{Idle: "Idle", RTS: "RTS", Closing: "Closing", Terminate: "Terminate", Error: "Error"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown state"
}

// A trigger is what can move a queue pair from one state to another.
type trigger uint8

const (
	modifyIdle      trigger = iota // Modify QP, by its next state
	modifyRTS                      // with an established LLP stream
	modifyClosing                  //
	modifyTerminate                //
	modifyError                    //
	peerClose                      // FIN, nothing outstanding in either direction
	peerCloseBusy                  // FIN with the SQ or the IRRQ not empty
	peerTerminate                  // a Terminate message arrived
	workError                      // a local work request failed
	protocolError                  // the peer violated protocol or protection
	llpLost                        // reset, time-out or loss of the LLP stream, also because this side reset it
	llpClosed                      // both halves of the LLP stream have ended
	triggerCount
)

// next is the state machine of Verbs §6.2, figure 6: the state that t leads to
// from s. ok is false where the specification has an Immediate Error (for the
// modify triggers) or nothing happens (for the others).
func (s State) next(t trigger) (to State, ok bool) {
	switch s {
	case Idle:
		switch t {
		case modifyIdle:
			return Idle, true
		case modifyRTS:
			return RTS, true
		case modifyError:
			return Error, true
		}
	case RTS:
		switch t {
		case modifyRTS:
			return RTS, true
		case modifyClosing, peerClose:
			return Closing, true
		case modifyTerminate, peerCloseBusy, peerTerminate, workError, protocolError:
			return Terminate, true
		case modifyError, llpLost:
			return Error, true
		}
	case Closing:
		switch t {
		case llpClosed:
			return Idle, true
		case peerTerminate, protocolError, llpLost:
			return Error, true
		}
	case Terminate:
		switch t {
		case llpClosed, llpLost:
			return Error, true
		}
	case Error:
		if t == modifyIdle {
			return Idle, true
		}
	}
	return s, false
}
