// The log of commands without --log-level: notices on standard error.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/internal/quote"
)

// notices is the log without --log-level: a plain line for each peer that could not be
// served. It leaves out connections that the server closed itself, because it exits or
// evicted them.
type notices struct {
	mu   sync.Mutex // of out
	out  io.Writer
	name string     // of the command
	from slog.Level // the lowest level that is written
}

// notices returns log if the user asked for it, and otherwise a logger that writes
// notices from a level up.
func (o *options) notices(cmd *cobra.Command, log *slog.Logger, from slog.Level) *slog.Logger {
	if o.logs() {
		return log
	}
	return slog.New(&notices{out: cmd.ErrOrStderr(), name: cmd.CommandPath(), from: from})
}

// Enabled reports whether this level is written.
func (n *notices) Enabled(_ context.Context, level slog.Level) bool { return level >= n.from }

// Handle writes "weft ping: start-up failed: 192.0.2.1:49152: why".
func (n *notices) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%s: %s", n.name, r.Message)
	printed := true
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && errors.Is(err, context.Canceled) {
			printed = false
		}
		line.WriteString(": ")
		switch a.Value.Kind() {
		case slog.KindInt64, slog.KindUint64, slog.KindFloat64, slog.KindDuration:
			line.WriteString(a.Key + " ") // a number alone says nothing
		}
		line.WriteString(shown(a.Value))
		return printed
	})
	if !printed {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := io.WriteString(n.out, oneLine(line.String())+"\n")
	return err
}

// shown formats a value. A text may be a name that a peer has chosen.
func shown(v slog.Value) string {
	if err, ok := v.Any().(error); ok {
		return message(err)
	}
	if v.Kind() == slog.KindString {
		return quote.Name(v.String())
	}
	return plain(v.String())
}

// WithAttrs returns n: no logger is derived from this one.
func (n *notices) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup returns n, too.
func (n *notices) WithGroup(string) slog.Handler { return n }

// oneLine keeps a notice on one line.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", ": ") }
