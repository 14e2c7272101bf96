// This file lets a server be managed: by systemd, by a supervisor that has confined it, or
// by signals.

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/cmd/weft/internal/service"
	"github.com/weft-rdma/weft/cmd/weft/internal/supervise"
)

// drainTime is the default of --drain.
const drainTime = 5 * time.Second

// managed holds the flags of servers that are about the process, and what manages it.
type managed struct {
	drain    time.Duration
	landlock landlock
	cmd      *cobra.Command

	manager  *service.Manager
	reloads  chan os.Signal // wishes to reload
	replaced atomic.Bool    // another process has the sockets
}

// landlock is the choice of --landlock.
type landlock string

const (
	landlockAuto    landlock = "auto"
	landlockOff     landlock = "off"
	landlockRequire landlock = "require"
)

// Set implements pflag.Value.
func (l *landlock) Set(s string) error {
	switch v := landlock(s); v {
	case landlockAuto, landlockOff, landlockRequire:
		*l = v
		return nil
	}
	return fmt.Errorf("expected %s, %s or %s", landlockAuto, landlockOff, landlockRequire)
}

func (l *landlock) String() string { return string(*l) }

// Type implements pflag.Value.
func (l *landlock) Type() string { return "how" }

func (m *managed) register(cmd *cobra.Command, f *pflag.FlagSet) {
	m.cmd, m.landlock = cmd, landlockAuto
	f.DurationVar(&m.drain, "drain", drainTime, "after a signal, answer the calls in progress for up to this `DURATION`, then end what is left")
	f.Var(&m.landlock, "landlock", "`HOW` the server is confined to the files that it needs: auto if the kernel has landlock, require, or off")
}

// A process is what main has made for the command. Tests that run a command within
// themselves have none.
type process struct {
	signals chan<- os.Signal
}

type processKey struct{}

func processOf(ctx context.Context) *process {
	p, _ := ctx.Value(processKey{}).(*process)
	return p
}

// underSupervision reports whether signals are for the supervisor, who tells this process
// what to do.
func underSupervision() bool { return os.Getenv(service.ControlVariable) != "" }

// open finds out what manages this process. O may use a socket of it.
func (m *managed) open(ctx context.Context, o *observation) (err error) {
	if m.manager, err = service.Open(); err != nil {
		return err
	}
	o.given = &m.manager.Sockets
	m.reloads = make(chan os.Signal, 1)
	switch p := processOf(ctx); {
	case p == nil:
	case m.manager.Supervised():
		go m.obey(p.signals)
	case reload != nil:
		signal.Notify(m.reloads, reload)
	}
	return nil
}

// obey does what the supervisor says until that is gone, which ends the command.
func (m *managed) obey(signals chan<- os.Signal) {
	for {
		command, err := m.manager.Next()
		switch {
		case errors.Is(err, net.ErrClosed): // by this process
			return
		case err != nil:
			signals <- terminate
			return
		case command == service.Interrupt:
			signals <- os.Interrupt
		case command == service.Reload:
			select {
			case m.reloads <- reload:
			default: // it has one to do
			}
		default:
			m.replaced.Store(command == service.Replaced)
			signals <- terminate
		}
	}
}

// close ends what open has begun.
func (m *managed) close() error {
	signal.Stop(m.reloads)
	return m.manager.Close()
}

// A workerError is the end of a worker, which has said why itself.
type workerError struct{ status int }

func (e *workerError) Error() string {
	return fmt.Sprintf("the server has ended with status %d", e.status)
}

// supervised runs the command in another process, which is confined, if that is wanted and
// this is not that process. Places returns what it needs to use, as it is now.
func (m *managed) supervised(ctx context.Context, log *slog.Logger, places func() (*confine.Rules, error)) (done bool, err error) {
	if m.landlock == landlockOff || m.manager.Supervised() {
		return false, nil
	}
	if _, err := confine.Version(); err != nil || processOf(ctx) == nil {
		if m.landlock == landlockRequire {
			return true, fmt.Errorf("--landlock %s: %w", m.landlock, err)
		}
		log.Debug("the server is not confined", "err", err)
		return false, nil
	}
	endWithin(ctx, max(m.drain, 0)+2*endTime)
	status, err := supervise.Run(ctx, supervise.Config{
		Program: "/proc/self/exe", Args: os.Args, Rules: places, Reload: m.reloads, Manager: m.manager, Log: log,
		Notice: func(text string) { fmt.Fprintf(m.cmd.ErrOrStderr(), "%s: %s\n", m.cmd.CommandPath(), plain(text)) },
	}, func() service.Command {
		if end, _ := signaled(ctx); end.signal == os.Interrupt {
			return service.Interrupt
		}
		return service.Terminate
	})
	if err == nil {
		err = &workerError{status}
	}
	return true, err
}

// serve waits until ctx ends or the server fails, and drains the server. Meanwhile it
// reloads by calling again, which may be nil, when told to. What says in one line what is
// served, and again returns what that is then.
func (m *managed) serve(ctx context.Context, server *fileserver.Server, o *observation, what string, again func() (string, error)) (err error) {
	endWithin(ctx, max(m.drain, 0)+endTime)
	if err := m.started(server, o, what); err != nil {
		return errors.Join(err, m.shutdown(ctx, server))
	}
	stop := make(chan struct{})
	defer close(stop)
	go m.manager.KeepAlive(stop, func() { server.ServerStats() }) // takes all locks
	for {
		select {
		case <-m.reloads:
			what = m.reload(what, again)
			continue
		case <-ctx.Done():
		case err = <-server.Failed():
		}
		return m.end(ctx, server, o, err)
	}
}

// started hands what is needed to the manager, and says that the command serves.
func (m *managed) started(server *fileserver.Server, o *observation, what string) error {
	if err := m.manager.Sockets.Unknown(fileserver.SocketRDMA, fileserver.SocketNFS, fileserver.SocketPortMap, socketMetrics); err != nil {
		return err
	}
	for _, s := range append(server.Sockets(), o.sockets()...) {
		if err := m.manager.Store(s.Name, s.Conn); err != nil {
			return err
		}
	}
	o.serving(server)
	return m.manager.Ready(what)
}

// reload reads the configuration again, and keeps the old one if it is wrong. It returns what
// is served.
func (m *managed) reload(what string, again func() (string, error)) string {
	_ = m.manager.Reloading() // only the status depends on it
	if again != nil {
		if now, err := again(); err != nil {
			fmt.Fprintf(m.cmd.ErrOrStderr(), "%s: not reloaded: %s\n", m.cmd.CommandPath(), message(err))
		} else {
			what = now
		}
	}
	_ = m.manager.Ready(what)
	return what
}

// end drains the server, after a signal or the failure why.
func (m *managed) end(ctx context.Context, server *fileserver.Server, o *observation, why error) error {
	_ = m.manager.Stopping("draining")
	if m.replaced.Load() {
		server.HandOver()
		why = errors.Join(why, o.handOver())
	}
	o.draining()
	end := m.shutdown(ctx, server)
	var cut *fileserver.CutError
	switch {
	case errors.As(end, &cut):
		fmt.Fprintf(m.cmd.ErrOrStderr(), "%s: %v after --drain %v\n", m.cmd.CommandPath(), cut, m.drain)
		return why
	case why == nil && end == nil:
		ended(ctx)
	}
	return errors.Join(why, end)
}

// shutdown ends the server within the time for it.
func (m *managed) shutdown(ctx context.Context, server *fileserver.Server) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.drain)
	defer cancel()
	return server.Shutdown(limit)
}
