// A limit of lines of log: peers cause most lines, and a hostile one could fill the disk.

package main

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// linesOfKind is how many lines with the same message are written in each
	// logWindow. Messages are texts of the source: what differs is in attributes.
	linesOfKind = 100
	logWindow   = time.Minute
)

// A logLimit is shared by a handler and those derived from it.
type logLimit struct {
	mu    sync.Mutex
	began time.Time
	kinds map[string]int // lines in this window, by message
}

// limitedHandler passes on a limited number of records for each message, above level
// Debug. With the first record of the next window it says how many it has left out.
type limitedHandler struct {
	slog.Handler
	limit *logLimit
}

func limitLines(h slog.Handler) slog.Handler {
	return &limitedHandler{h, &logLimit{kinds: make(map[string]int)}}
}

// Handle implements slog.Handler.
func (h *limitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelInfo {
		return h.Handler.Handle(ctx, r) // asked for, to see everything
	}
	pass, omitted := h.limit.admit(r.Message, r.Time)
	for message, n := range omitted {
		line := slog.NewRecord(r.Time, slog.LevelWarn, "lines of log were left out", 0)
		line.AddAttrs(slog.String("message", message), slog.Int("lines", n), slog.Duration("within", logWindow))
		if err := h.Handler.Handle(ctx, line); err != nil {
			return err
		}
	}
	if !pass {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// admit reports whether a line may be written, and at the begin of a window what the last
// one has left out.
func (l *logLimit) admit(message string, now time.Time) (pass bool, omitted map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.began) >= logWindow {
		omitted = make(map[string]int)
		for m, n := range l.kinds {
			if n > linesOfKind {
				omitted[m] = n - linesOfKind
			}
		}
		clear(l.kinds)
		l.began = now
	}
	l.kinds[message]++
	return l.kinds[message] <= linesOfKind, omitted
}

// WithAttrs implements slog.Handler.
func (h *limitedHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &limitedHandler{h.Handler.WithAttrs(attrs), h.limit}
}

// WithGroup implements slog.Handler.
func (h *limitedHandler) WithGroup(name string) slog.Handler {
	return &limitedHandler{h.Handler.WithGroup(name), h.limit}
}
