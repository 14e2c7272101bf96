// This file holds the flags and checks that all commands share.

package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/capture"
)

// options are the flags of every subcommand that makes connections.
type options struct {
	pcap     string
	logLevel string
	format   logFormat
}

// A logFormat is the choice of --log-format.
type logFormat string

// Set implements pflag.Value.
func (f *logFormat) Set(s string) error {
	if s != "text" && s != "json" {
		return errors.New("expected text or json")
	}
	*f = logFormat(s)
	return nil
}

func (f *logFormat) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *logFormat) Type() string { return "format" }

func (o *options) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.pcap, "pcap", "", "record all connections to `FILE` (pcapng, for Wireshark)")
	cmd.Flags().StringVar(&o.logLevel, "log-level", "", "log to standard error from `LEVEL` up: debug, info, warn, error or off (default: off; servers report peers that they could not serve)")
	cmd.Flags().Var(&o.format, "log-format", "log as `FORMAT`: text or json; without --log-level, warnings and errors")
}

// arguments checks the number of arguments; most is 0 for any. The error says what was
// expected.
func arguments(least, most int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("missing argument: expected %s", what)
		case most > 0 && len(args) > most:
			return usagef("unexpected argument %q: expected %s", args[most], what)
		}
		return nil
	}
}

// logger returns the logger that the flags select.
func (o *options) logger(w io.Writer) (*slog.Logger, error) {
	if !o.logs() || strings.EqualFold(o.logLevel, "off") {
		return slog.New(slog.DiscardHandler), nil
	}
	level := slog.LevelWarn
	if o.logLevel == "" {
		return slog.New(limitLines(o.handler(w, level))), nil
	}
	if err := level.UnmarshalText([]byte(o.logLevel)); err != nil {
		return nil, usagef("--log-level %q: expected debug, info, warn, error or off", o.logLevel)
	}
	return slog.New(limitLines(o.handler(w, level))), nil
}

// logs reports whether the user asked for a log.
func (o *options) logs() bool { return o.logLevel != "" || o.format != "" }

// handler writes a log in the format that the flags select.
func (o *options) handler(w io.Writer, level slog.Level) slog.Handler {
	opts := &slog.HandlerOptions{Level: level}
	if o.format == "json" {
		return slog.NewJSONHandler(w, opts)
	}
	return slog.NewTextHandler(w, opts)
}

// wrap returns the wrapper for connections, nil for none. The recording is complete
// when stop has returned.
func (o *options) wrap() (wrap func(net.Conn) net.Conn, stop func() error, err error) {
	if o.pcap == "" {
		return nil, func() error { return nil }, nil
	}
	w, err := capture.Create(o.pcap)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot record connections: %w", err)
	}
	wrap = func(nc net.Conn) net.Conn { return capture.Conn(nc, w) }
	stop = func() error {
		if err := w.Close(); err != nil {
			return fmt.Errorf("cannot record connections to %s: %w", o.pcap, err)
		}
		return nil
	}
	return wrap, stop, nil
}
