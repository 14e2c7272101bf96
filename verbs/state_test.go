package verbs

import "testing"

// The state machine of Verbs §6.2, figure 6, as a table: every trigger in every
// state. A dash is an Immediate Error for what the consumer asks, and for all
// else something that cannot happen or changes nothing.
//
// Claims: V-6.2-1 V-6.2-2 V-6.2.4-2 V-6.2.1-4
// Claims: V-6.1.1-11 V-6.2-3 V-9.2.5.3-3
func TestEveryStateAnswersEveryTriggerAsTheVerbsSay(t *testing.T) {
	const none = State(255)
	triggers := [...]struct {
		name string
		trigger
		from [5]State // Idle, RTS, Closing, Terminate, Error
	}{
		{"Modify to Idle", modifyIdle, [5]State{Idle, none, none, none, Idle}},
		{"Modify to RTS", modifyRTS, [5]State{RTS, RTS, none, none, none}},
		{"Modify to Closing", modifyClosing, [5]State{none, Closing, none, none, none}},
		{"Modify to Terminate", modifyTerminate, [5]State{none, Terminate, none, none, none}},
		{"Modify to Error", modifyError, [5]State{Error, Error, none, none, none}},
		{"peer closed, nothing outstanding", peerClose, [5]State{none, Closing, none, none, none}},
		{"peer closed, work outstanding", peerCloseBusy, [5]State{none, Terminate, none, none, none}},
		{"Terminate message", peerTerminate, [5]State{none, Terminate, Error, none, none}},
		{"failed work request", workError, [5]State{none, Terminate, none, none, none}},
		{"violation by the peer", protocolError, [5]State{none, Terminate, Error, none, none}},
		{"LLP lost", llpLost, [5]State{none, Error, Error, Error, none}},
		{"LLP closed", llpClosed, [5]State{none, none, Idle, Error, none}},
	}
	if len(triggers) != int(triggerCount) {
		t.Fatalf("the table has %d triggers of %d", len(triggers), triggerCount)
	}
	for _, tt := range triggers {
		for from, want := range tt.from {
			from := State(from)
			to, ok := from.next(tt.trigger)
			if want == none {
				if ok || to != from {
					t.Errorf("%v: %s leads to %v, expected to change nothing", from, tt.name, to)
				}
				continue
			}
			if !ok || to != want {
				t.Errorf("%v: %s leads to %v (%v), expected %v", from, tt.name, to, ok, want)
			}
		}
	}
}

// Verbs §6.2: what each state does with a work request that is posted.
func TestEveryStateHasItsIntake(t *testing.T) {
	for state, want := range map[State]intake{Idle: accept, RTS: accept, Closing: refuse, Terminate: accept, Error: flush} {
		if got := intakeOf(state); got != want {
			t.Errorf("%v: intake %d, expected %d", state, got, want)
		}
	}
}

func TestEverythingHasAName(t *testing.T) {
	for id := EventLLPCloseComplete; int(id) < len(eventNames); id++ {
		if id.String() == "unknown event" {
			t.Errorf("event %d has no name", id)
		}
	}
	for op := OpSend; int(op) < len(operations); op++ {
		if op.String() == "unknown operation" {
			t.Errorf("operation %d has no name", op)
		}
	}
	for s := Success; int(s) < len(statusNames); s++ {
		if s.String() == "" || s.String() == "unknown status" {
			t.Errorf("status %d has no name", s)
		}
	}
	for s, want := range map[interface{ String() string }]string{
		EventID(0): "unknown event", EventID(200): "unknown event", Op(0): "unknown operation", Op(99): "unknown operation",
		Status(99): "unknown status", State(9): "unknown state", Closing: "Closing",
	} {
		if got := s.String(); got != want {
			t.Errorf("%T(%[1]d) is %q, expected %q", s, got, want)
		}
	}
}
