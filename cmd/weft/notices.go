// This file is the log of servers at which nobody asked for a log.

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

// notices is the log of a server that was asked for none: a plain line for each
// peer that it could not serve, and nothing else. Connections that the server
// itself gave up, because it ends or because there were too many, are no news.
type notices struct {
	mu   sync.Mutex // of out
	out  io.Writer
	name string     // of the command
	from slog.Level // the least that is told
}

// notices returns the logger asked for, or if none was, one that writes notices
// from a level on.
func (o *options) notices(cmd *cobra.Command, log *slog.Logger, from slog.Level) *slog.Logger {
	if o.logLevel != "" {
		return log
	}
	return slog.New(&notices{out: cmd.ErrOrStderr(), name: cmd.CommandPath(), from: from})
}

// Enabled reports whether something of this level is told.
func (n *notices) Enabled(_ context.Context, level slog.Level) bool { return level >= n.from }

// Handle writes "weft ping: start-up failed: 192.0.2.1:49152: why".
func (n *notices) Handle(_ context.Context, r slog.Record) error {
	var line strings.Builder
	fmt.Fprintf(&line, "%s: %s", n.name, r.Message)
	news := true
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok && errors.Is(err, context.Canceled) {
			news = false
		}
		fmt.Fprintf(&line, ": %s", shown(a.Value))
		return news
	})
	if !news {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	_, err := io.WriteString(n.out, oneLine(line.String())+"\n")
	return err
}

// shown is a value for people: a text may be a name that a peer has chosen.
func shown(v slog.Value) string {
	if err, ok := v.Any().(error); ok {
		return message(err)
	}
	if v.Kind() == slog.KindString {
		return quote.Name(v.String())
	}
	return plain(v.String())
}

// WithAttrs is for loggers that are made of this one: there are none.
func (n *notices) WithAttrs([]slog.Attr) slog.Handler { return n }

// WithGroup is for the same.
func (n *notices) WithGroup(string) slog.Handler { return n }

// oneLine keeps what is told of one peer on one line.
func oneLine(s string) string { return strings.ReplaceAll(s, "\n", ": ") }
