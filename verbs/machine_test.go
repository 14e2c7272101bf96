package verbs_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// A journal is a log that keeps the states that queue pairs enter, in order.
type journal struct {
	slog.Handler
	mu   sync.Mutex
	path []string
}

func newJournal() *journal { return &journal{Handler: slog.DiscardHandler} }

func (j *journal) Enabled(context.Context, slog.Level) bool { return true }
func (j *journal) WithAttrs([]slog.Attr) slog.Handler       { return j }
func (j *journal) WithGroup(string) slog.Handler            { return j }
func (j *journal) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if r.Message == "state" && a.Key == "to" {
			j.mu.Lock()
			j.path = append(j.path, a.Value.String())
			j.mu.Unlock()
		}
		return true
	})
	return nil
}

// since returns the states entered since the last call, like "Terminate Error".
func (j *journal) since() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	path := strings.Join(j.path, " ")
	j.path = nil
	return path
}

// A scene is a's queue pair in one of the states. What b sent before that arrives with
// y.Resume.
type scene struct {
	table
	*journal
	t *testing.T
}

// enact makes a scene with a's queue pair in the state. Before that b sends what say
// posts, which a has not received yet. b receives nothing more of a, and closes only by
// itself.
func enact(t *testing.T, state verbs.State, say func(s *scene)) *scene {
	t.Helper()
	s := &scene{journal: newJournal(), t: t}
	s.a = newSideOf(t, verbs.Config{CloseTimeout: time.Minute, Logger: slog.New(s.journal)}, reads)
	s.b = newSide(t, reads)
	if state == verbs.Idle {
		return s
	}
	s.x, s.y = iwarptest.Pipe()
	join(t, s.a.qp, s.b.qp, s.x, s.y, cm.Params{})
	s.a.post(verbs.SendWR{Op: verbs.OpWrite}) // so that b may send, too
	quiesce()
	s.x.Hold()
	s.y.Hold()
	if say != nil {
		say(s)
		quiesce()
	}
	switch state {
	case verbs.RTS:
	case verbs.Error:
		s.a.qp.Abort()
	default:
		_, err := s.a.qp.Modify(state, verbs.QPModify{})
		check(t, err)
	}
	quiesce()
	if at := s.a.qp.State(); at != state {
		t.Fatalf("the state is %v, expected %v", at, state)
	}
	s.since()
	return s
}

// An outcome is what a trigger leads to: the states entered, in order, and either
// an Immediate Error or events.
type outcome struct {
	path   string
	err    error
	events []verbs.EventID
}

func to(path string, events ...verbs.EventID) outcome { return outcome{path: path, events: events} }
func refused(err error) outcome                       { return outcome{err: err} }

// modify is the trigger of Modify QP with nothing but what is required.
func modify(next verbs.State) func(*scene) error {
	return func(s *scene) error {
		var m verbs.QPModify
		if next == verbs.RTS && s.a.qp.State() == verbs.Idle {
			x, _ := iwarptest.Pipe()
			m.LLP = newMPA(x)
		}
		_, err := s.a.qp.Modify(next, m)
		return err
	}
}

// The state machine of Verbs §6.2 (figures 6 to 11), seen from outside: every trigger in
// every state, with the states that it leads through, and the errors and events.
//
// Claims: V-6.2-1 V-6.2-2 V-6.2.1-4 V-6.2.1.1-1 V-6.2.1.2-1 V-6.2.1.3-1 V-6.2.2-5 V-6.2.2.1-1 V-6.2.2.2-1 V-6.2.2.2-2 V-6.2.2.2-3
// Claims: V-6.2.2.2-4 V-6.2.2.3-1 V-6.2.2.3-3 V-6.2.2.3-4 V-6.2.2.3-6 V-6.2.3-8 V-6.2.3-9 V-6.2.3-10 V-6.2.3-12 V-6.2.4-2 V-6.2.5-2
// Claims: V-6.2.5-3 V-6.2.5-7 V-6.2.5-9 V-6.2.5-10 V-6.2.5-12 V-9.2.5.3-12 V-6.1.3-11 V-6.2.2-6
// Claims: V-6.1.1-11 V-6.2-3 V-6.2.2.2-5
func TestEveryTriggerInEveryState(t *testing.T) {
	same := to("")
	bad := refused(verbs.ErrState)
	lost, badClose := verbs.EventLLPLost, verbs.EventBadClose
	resume := func(s *scene) error { s.y.Resume(); return nil }
	send := func(s *scene) { s.b.post(s.b.send(1, 0, 8)) }
	for _, tt := range []struct {
		name    string
		say     func(*scene)
		trigger func(*scene) error
		from    [5]outcome // Idle, RTS, Closing, Terminate, Error
	}{
		{"Modify to Idle", nil, modify(verbs.Idle), [5]outcome{same, bad, bad, bad, to("Idle")}},
		{"Modify to RTS", nil, modify(verbs.RTS), [5]outcome{to("RTS"), same, bad, bad, bad}},
		{"Modify to Closing", nil, modify(verbs.Closing), [5]outcome{bad, to("Closing"), bad, bad, bad}},
		{"Modify to Closing with work on the SQ", nil, func(s *scene) error {
			_ = s.a.qp.PostSend(s.a.read(1, s.b, 0, 8))
			return modify(verbs.Closing)(s)
		}, [5]outcome{bad, to("Closing Error", badClose), bad, bad, bad}},
		{"Modify to Closing with a Read of the peer's", func(s *scene) {
			s.b.post(s.b.read(1, s.a, 0, 1<<20))
		}, func(s *scene) error {
			s.y.Resume()
			quiesce()
			return modify(verbs.Closing)(s)
		}, [5]outcome{1: to("Closing Error", badClose), 2: {"Error", verbs.ErrState, []verbs.EventID{badClose}}, 3: bad}},
		{"Modify to Terminate", nil, modify(verbs.Terminate), [5]outcome{bad, to("Terminate"), bad, bad, bad}},
		{"Modify to Error", nil, modify(verbs.Error), [5]outcome{to("Error"), to("Error"), bad, bad, bad}},
		{"Modify to no state", nil, modify(9), [5]outcome{bad, bad, bad, bad, bad}},
		{"a failed work request", nil, func(s *scene) error {
			return s.a.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{{STag: 0xBAD00, Length: 1}}})
		}, [5]outcome{same, to("Terminate"), bad, same, same}},
		{"the peer's FIN", func(s *scene) { check(s.t, s.y.CloseWrite()) }, resume,
			[5]outcome{1: to("Closing Idle", verbs.EventLLPCloseComplete), 2: to("Idle", verbs.EventLLPCloseComplete), 3: to("Error")}},
		{"the peer's FIN with work on the SQ", func(s *scene) { check(s.t, s.y.CloseWrite()) }, func(s *scene) error {
			if err := s.a.qp.PostSend(s.a.read(1, s.b, 0, 8)); err != nil {
				return err
			}
			s.y.Resume()
			return nil
		}, [5]outcome{1: to("Terminate Error", verbs.EventBadLLPClose), 2: bad, 3: to("Error")}},
		{"a Terminate message", func(s *scene) { check(s.t, s.b.qp.Terminate()) }, resume,
			[5]outcome{1: to("Terminate Error", verbs.EventTerminateReceived), 2: to("Error", badClose), 3: to("Error")}},
		{"a segment", func(s *scene) { s.a.receives(1, 1, 8); send(s) }, resume,
			[5]outcome{1: same, 2: to("Error", badClose), 3: same}},
		{"a violation", send, resume,
			[5]outcome{1: to("Terminate", verbs.EventRQMSNRange), 2: to("Error", badClose), 3: same}},
		{"a reset by the peer", func(*scene) {}, func(s *scene) error { return s.y.Reset() },
			[5]outcome{1: to("Error", verbs.EventLLPReset), 2: to("Error", lost), 3: to("Error", badClose)}},
		{"time", nil, func(*scene) error { time.Sleep(time.Minute); return nil },
			[5]outcome{same, same, to("Error", lost), to("Error", badClose), same}},
		{"a failure of the queue pair", nil, func(s *scene) error { return s.a.qp.Fail() }, [5]outcome{
			to("Error", verbs.EventQPCatastrophic), to("Terminate", verbs.EventQPCatastrophic),
			to("Error", verbs.EventQPCatastrophic, lost), to("Error", verbs.EventQPCatastrophic, badClose), to("", verbs.EventQPCatastrophic),
		}},
	} {
		for state, want := range tt.from {
			state := verbs.State(state)
			if tt.say != nil && (state == verbs.Idle || state == verbs.Error) {
				continue // there is no stream for it
			}
			t.Run(tt.name+"/"+state.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := enact(t, state, tt.say)
					if err := tt.trigger(s); want.err != nil || err != nil {
						wantError(t, err, want.err)
					}
					quiesce()
					if path := s.since(); path != want.path {
						t.Errorf("the states are %q, expected %q", path, want.path)
					}
					if got := s.a.eventIDs(); !slices.Equal(got, want.events) {
						t.Errorf("events %v, expected %v", got, want.events)
					}
				})
			})
		}
	}
}

// eventIDs returns the events so far.
func (s *side) eventIDs() []verbs.EventID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return eventIDs(s.events)
}
