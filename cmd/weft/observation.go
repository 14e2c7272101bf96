// The flags by which a running command is observed: metrics, health and the access log.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/cmd/weft/internal/observe"
	"github.com/weft-rdma/weft/cmd/weft/internal/service"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/verbs"
)

// observation holds the flags, and what they have started. Its methods do nothing for what
// the flags do not ask for.
type observation struct {
	metrics, access, otlp string

	observer *observe.Observer // nil without flags
	closers  []io.Closer
	announce func()           // prints where metrics are; nil if nowhere
	given    *service.Sockets // which may have one for metrics
	socket   fileserver.Socket
	scraped  *observe.Scraped // nil for none
}

// socketMetrics is the purpose of the socket of metrics.
const socketMetrics = "metrics"

// register adds the flag of metrics.
func (o *observation) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.metrics, "metrics", "", "serve metrics, health and connections by HTTP at `ADDR`: host:port, :port on this machine only, or unix:PATH for this user only")
}

// registerCalls adds the flags of commands that serve calls.
func (o *observation) registerCalls(cmd *cobra.Command) {
	o.register(cmd)
	cmd.Flags().StringVar(&o.access, "access-log", "", "append a line for each call to `FILE`, or - for standard error: who, what, how long, status")
	cmd.Flags().StringVar(&o.otlp, "otlp", "", "send a span of OpenTelemetry for each call to the collector at `URL`, such as http://127.0.0.1:4318")
}

// open starts what the flags ask for. close ends it, in any case.
func (o *observation) open(ctx context.Context, cmd *cobra.Command, opts *options) (err error) {
	defer func() {
		if err != nil {
			o.close()
		}
	}()
	ln, err := o.inherited()
	if err != nil {
		return err
	}
	if ln == nil && o.metrics == "" && o.access == "" && o.otlp == "" {
		return nil
	}
	cfg := observe.Config{Version: cmd.Root().Version}
	if cfg.Access, err = o.openAccess(cmd.ErrOrStderr(), opts); err != nil {
		return err
	}
	if o.otlp != "" {
		if cfg.Trace, err = observe.NewTracer(ctx, o.otlp, cfg.Version); err != nil {
			return usagef("--otlp %s: %v", o.otlp, err)
		}
		o.closers = append(o.closers, cfg.Trace)
	}
	o.observer = observe.New(cfg)
	if ln == nil && o.metrics == "" {
		return nil
	}
	if ln == nil {
		var wrong *observe.AddressError
		if ln, err = observe.Listen(ctx, o.metrics); errors.As(err, &wrong) {
			return usagef("--metrics %s: %v", o.metrics, err)
		} else if err != nil {
			return fmt.Errorf("--metrics %s: %w", o.metrics, err)
		}
	}
	if c, ok := ln.(syscall.Conn); ok {
		o.socket = fileserver.Socket{Name: service.StoredName(socketMetrics, o.metrics), Conn: c}
	}
	o.scraped = o.observer.Serve(ln)
	o.closers = append(o.closers, o.scraped)
	at := metricsURL(ln.Addr())
	o.announce = func() { fmt.Fprintf(cmd.ErrOrStderr(), "metrics at %s\n", at) }
	return nil
}

// inherited returns the listener that there is already, nil for none.
func (o *observation) inherited() (ln net.Listener, err error) {
	if o.given == nil {
		return nil, nil
	}
	for _, one := range o.given.Take(socketMetrics, o.metrics) {
		if one.Listener == nil || ln != nil {
			err = errors.Join(fmt.Errorf("the service manager has to pass one socket of TCP or Unix with the name %q", socketMetrics), one.Close())
			continue
		}
		ln = observe.Adopt(one.Listener, o.metrics)
	}
	if err != nil && ln != nil {
		ln.Close()
	}
	return ln, err
}

// sockets are those that the next process may have.
func (o *observation) sockets() []fileserver.Socket {
	if o.socket.Conn == nil {
		return nil
	}
	return []fileserver.Socket{o.socket}
}

// handOver ends the HTTP server, whose socket another process has.
func (o *observation) handOver() error {
	if o.scraped == nil {
		return nil
	}
	return o.scraped.HandOver()
}

// metricsURL is what a user gives to curl, or to weft top.
func metricsURL(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return "http://" + a.String() + "/metrics"
}

// openAccess opens the access log; nil is none.
func (o *observation) openAccess(stderr io.Writer, opts *options) (*slog.Logger, error) {
	switch o.access {
	case "":
		return nil, nil
	case "-":
		return slog.New(opts.handler(stderr, slog.LevelInfo)), nil
	}
	f, err := os.OpenFile(o.access, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--access-log: %w", err)
	}
	o.closers = append(o.closers, f)
	return slog.New(opts.handler(f, slog.LevelInfo)), nil
}

// handler is what observes the calls of a file server, nil for nothing.
func (o *observation) handler() func(oncrpc.Handler) oncrpc.Handler {
	if o.observer == nil {
		return nil
	}
	return o.observer.Handler
}

// exported is what names the exports of calls, nil for nothing.
func (o *observation) exported() func(names []string, of func(*oncrpc.Request) string) {
	if o.observer == nil {
		return nil
	}
	return o.observer.SetExports
}

// rnic adds an RNIC.
func (o *observation) rnic(r *verbs.RNIC) (remove func()) {
	if o.observer == nil {
		return func() {}
	}
	return o.observer.AddRNIC(r)
}

// serving says that a file server serves.
func (o *observation) serving(s *fileserver.Server) {
	if o.observer == nil {
		return
	}
	o.observer.AddRNIC(s.RNIC())
	o.observer.SetServer(s)
	o.running()
}

// running says that a command does its work now.
func (o *observation) running() {
	if o.observer == nil {
		return
	}
	o.observer.Serving()
	if o.announce != nil {
		o.announce()
	}
}

// draining says that no more calls are served.
func (o *observation) draining() {
	if o.observer != nil {
		o.observer.Draining()
	}
}

// retried counts an attempt to reach a server again.
func (o *observation) retried() {
	if o.observer != nil {
		o.observer.Retried()
	}
}

// close ends everything.
func (o *observation) close() error {
	var errs []error
	for _, c := range o.closers {
		errs = append(errs, c.Close())
	}
	o.closers = nil
	return errors.Join(errs...)
}
