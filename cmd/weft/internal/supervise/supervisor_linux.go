// The supervisor: which worker serves, and what happens at a signal.
//
// All decisions are made in one goroutine, loop. Each worker has two more, which deliver its
// messages and its end as events, in this order:
//
//  1. A worker starts, with the sockets that there are.
//  2. It stores its sockets, and says READY. Then it is the active one: its notifications
//     are passed on, and sockets that it has not stored are closed.
//  3. At a reload the rules are looked up again. If those of the active worker permit as
//     much, it reloads itself. Otherwise another worker is started (step 1). Once that
//     is active, the other one is told that it is replaced, and ends when it has drained.
//     If the new one ends before it is ready, the old one stays.
//  4. When the context ends, all workers are told so but those that are replaced: they drain
//     already. The status is that of the last one that was active, or of the first one if none was.

package supervise

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/cmd/weft/internal/service"
)

// A Config says what to run, and how.
type Config struct {
	Program string   // the file
	Args    []string // with the name
	// Rules looks up what the worker may use.
	Rules func() (*confine.Rules, error)
	// Start starts a worker; nil is [confine.Start].
	Start func(*exec.Cmd, *confine.Rules) error
	// Reload delivers the wish to reload.
	Reload <-chan os.Signal
	// Manager is that of the supervisor. Its sockets go to the worker.
	Manager *service.Manager
	Log     *slog.Logger
	// Notice reports a reload that has failed.
	Notice func(string)
}

// Run runs a worker until it ends, and returns its exit status. When the context ends, it
// sends the worker the command end returns.
func Run(ctx context.Context, cfg Config, end func() service.Command) (status int, err error) {
	if cfg.Start == nil {
		cfg.Start = confine.Start
	}
	s := &supervisor{cfg: cfg, events: make(chan event)}
	defer s.store.close()
	if err := s.store.adopt(&cfg.Manager.Sockets); err != nil {
		return 0, err
	}
	rules, err := cfg.Rules()
	if err != nil {
		return 0, err
	}
	if s.next, err = s.start(rules); err != nil {
		return 0, err
	}
	return s.loop(ctx, end), nil
}

// A supervisor is the state of loop.
type supervisor struct {
	cfg    Config
	store  store
	events chan event

	active *worker   // serves; nil at the start
	next   *worker   // starts; nil for none
	old    []*worker // are replaced
	again  bool      // reload once next is decided
	ending bool
	served bool // a worker has been active
	status int  // of the last active worker, or of the first one
}

// An event is a message of a worker, or its end.
type event struct {
	from    *worker
	message *message // nil is the end
}

func (s *supervisor) loop(ctx context.Context, end func() service.Command) int {
	done := ctx.Done()
	for s.active != nil || s.next != nil || len(s.old) > 0 {
		select {
		case <-done:
			done = nil
			s.end(end())
		case <-s.cfg.Reload:
			s.reload()
		case e := <-s.events:
			if e.message != nil {
				s.heard(e.from, e.message)
			} else {
				s.gone(e.from)
			}
		}
	}
	return s.status
}

// end ends all workers. Those that are replaced are draining: told again, they would cut the
// calls in progress.
func (s *supervisor) end(command service.Command) {
	s.ending = true
	_ = s.cfg.Manager.Stopping("draining")
	for _, w := range []*worker{s.active, s.next} {
		if w != nil {
			w.tell(command)
		}
	}
}

// reload gives the active worker what the configuration says now.
func (s *supervisor) reload() {
	switch {
	case s.ending:
		return
	case s.next != nil:
		s.again = true
		return
	}
	rules, err := s.cfg.Rules()
	if err == nil && s.active.rules.Permits(rules) {
		s.active.tell(service.Reload)
		return
	}
	_ = s.cfg.Manager.Reloading()
	if err == nil {
		s.next, err = s.start(rules)
	}
	if err != nil {
		s.stays(err)
	}
}

// stays reports that the active worker goes on.
func (s *supervisor) stays(err error) {
	s.cfg.Notice(fmt.Sprintf("not reloaded: %v", err))
	_ = s.cfg.Manager.Ready("serving as before: the reload failed")
}

// heard handles a message.
func (s *supervisor) heard(w *worker, m *message) {
	if m.socket != nil {
		s.store.add(w, m.field("FDNAME="), m.socket)
		return
	}
	if w == s.next && m.has("READY=1") && !s.ending {
		s.next = nil
		if s.active != nil {
			s.active.tell(service.Replaced)
			s.old = append(s.old, s.active)
		}
		s.active, s.served = w, true
		s.store.keep(w)
		s.cfg.Log.Info("landlock denies the server all files but these", "permitted", w.rules.String())
	}
	if w == s.active && !s.ending {
		_ = s.cfg.Manager.Relay(m.text)
	}
	s.catchUp()
}

// gone handles the end of a worker.
func (s *supervisor) gone(w *worker) {
	s.old = slices.DeleteFunc(s.old, func(o *worker) bool { return o == w })
	switch w {
	case s.active:
		s.active, s.status = nil, w.status
	case s.next:
		s.next = nil
		s.store.forget(w)
		if !s.served {
			s.status = w.status
		} else if s.active != nil && !s.ending {
			s.stays(fmt.Errorf("the new process has ended with status %d", w.status))
		}
	}
	if s.active == nil && s.next == nil && !s.ending { // nobody accepts connections any more
		s.store.close()
		s.end(service.Terminate)
	}
	s.catchUp()
}

// catchUp does a reload that had to wait.
func (s *supervisor) catchUp() {
	if s.again && s.next == nil && s.active != nil {
		s.again = false
		s.reload()
	}
}

// start starts a worker with the sockets that there are.
func (s *supervisor) start(rules *confine.Rules) (*worker, error) {
	w, err := newWorker(&s.cfg, rules, s.store.all)
	if err != nil {
		return nil, err
	}
	go w.report(s.events)
	return w, nil
}

// has reports whether a message has a line.
func (m *message) has(line string) bool { return slices.Contains(strings.Split(m.text, "\n"), line) }

// field returns what follows a name in a line.
func (m *message) field(name string) string {
	for line := range strings.SplitSeq(m.text, "\n") {
		if v, ok := strings.CutPrefix(line, name); ok {
			return v
		}
	}
	return ""
}
