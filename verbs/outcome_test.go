package verbs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/internal/script"
)

// What the end of a stream does to its queue pair.
//
// Claims: V-6.2.2.2-2 V-6.2.3-9 V-6.2.5-12
func TestWhatTheEndOfAStreamDoes(t *testing.T) {
	states := map[string]State{"RTS": RTS, "Closing": Closing, "Terminate": Terminate, "Error": Error}
	receptions := map[string]reception{}
	for in := range receptionNames {
		receptions[reception(in).String()] = reception(in)
	}
	script.Run(t, "testdata/outcome.txt", func(command string, args []string) string {
		state, ok := states[command]
		if !ok {
			t.Fatalf("no state %q", command)
		}
		e := ending{state: state}
		facts := map[string]*bool{"lost": &e.lost, "reset": &e.reset, "busy": &e.busy, "clean": &e.clean, "report": &e.report}
		for _, arg := range args {
			if in, ok := receptions[arg]; ok {
				e.in = in
			} else if fact, ok := facts[arg]; ok {
				*fact = true
			} else {
				t.Fatalf("nothing is called %q", arg)
			}
		}
		trigger, event := e.outcome()
		to, ok := state.next(trigger)
		if !ok && state != Error {
			t.Errorf("%s %s: trigger %d leads nowhere", command, strings.Join(args, " "), trigger)
		}
		if event == 0 {
			return to.String()
		}
		return fmt.Sprintf("%v, %v", to, event)
	})
}

// Every row of the table is used: each is the outcome of some ending.
func TestEveryRowOfOutcomesIsReached(t *testing.T) {
	type row struct {
		trigger
		event EventID
	}
	reached := map[State]map[row]bool{}
	for bits := range 1 << 5 {
		is := func(i int) bool { return bits>>i&1 == 1 }
		for _, state := range []State{RTS, Closing, Terminate, Error} {
			for in := range receptionNames {
				e := ending{state, reception(in), is(0), is(1), is(2), is(3), is(4)}
				trigger, event := e.outcome()
				if reached[state] == nil {
					reached[state] = map[row]bool{}
				}
				reached[state][row{trigger, event}] = true
			}
		}
	}
	for _, o := range outcomes {
		if !reached[o.state][row{o.trigger, o.event}] {
			t.Errorf("%v: trigger %d with event %v is never the outcome", o.state, o.trigger, o.event)
		}
	}
}
