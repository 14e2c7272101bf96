// This file watches how a server answers: it tells of one that has stopped, and of
// its return, and ends the wait where there is a limit.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

const (
	// contactTime is how long connecting to a server may take, and its first answer,
	// where --timeout says nothing.
	contactTime = 10 * time.Second
	// brokenNotice is after how long without a connection a server is told of, and
	// silentNotice with one. The next notice comes after as long again, then after
	// twice as long each time, up to mostNotice.
	brokenNotice = 3 * time.Second
	silentNotice = 10 * time.Second
	mostNotice   = time.Minute
)

// A silentError ends calls to a server that does not answer.
type silentError struct {
	server string
	waited time.Duration // 0: it ended the connection
	first  bool          // it has never answered
	cause  error         // why there is no connection; nil if there is one
}

func (e *silentError) Error() string {
	text := "has not answered"
	if e.waited > 0 {
		text += " for " + seconds(e.waited)
	}
	if e.cause != nil {
		text += ": " + brief(e.cause)
	}
	return "server " + e.server + " " + text
}

func (e *silentError) Unwrap() error { return e.cause }

// Timeout reports whether time ran out.
func (e *silentError) Timeout() bool { return e.waited > 0 }

// A watch is a caller of a server that keeps an eye on it.
type watch struct {
	caller oncrpc.Caller
	server string        // as its user knows it
	limit  time.Duration // of the first answer
	silent time.Duration // for which the server may not answer afterwards; 0: any
	notice func(text string)

	// hasty has calls end with the connection while there was no answer yet. Who
	// speaks another protocol ends it.
	hasty bool

	mu        sync.Mutex
	calls     map[*context.CancelCauseFunc]bool
	connected bool // once
	answered  bool // once
	since     time.Time
	next      time.Duration // after since, when the next notice is due
	told      bool          // that it does not respond
	given     bool          // up: until it answers further calls do not wait long
	cause     error         // why there is no connection, if that is known
	timer     *time.Timer
}

// newWatch makes a watch; its caller is still to be set.
func newWatch(server string, limit, silent time.Duration, notice func(string)) *watch {
	return &watch{server: server, limit: limit, silent: silent, notice: notice, calls: make(map[*context.CancelCauseFunc]bool)}
}

// Call makes a call. Its error is a *silentError when the server kept silent too
// long.
func (w *watch) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	return w.by(ctx, w.caller, call)
}

// by makes a call by any caller of the server.
func (w *watch) by(ctx context.Context, c oncrpc.Caller, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.begin(&cancel)
	reply, err := c.Call(ctx, call)
	w.end(&cancel, err == nil || refused(err))
	var silent *silentError
	if err != nil && errors.As(context.Cause(ctx), &silent) {
		err = silent
	}
	return reply, err
}

// Close closes the caller.
func (w *watch) Close() error { return w.caller.Close() }

// refused reports whether an error is an answer of the server's.
func refused(err error) bool {
	var accept *oncrpc.AcceptError
	var reject *oncrpc.RejectError
	var remote *wire.RemoteError
	return errors.As(err, &accept) || errors.As(err, &reject) || errors.As(err, &remote)
}

func (w *watch) begin(call *context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[call] = true
	if len(w.calls) == 1 {
		w.restart()
	}
}

func (w *watch) end(call *context.CancelCauseFunc, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, call)
	if answered {
		if w.told {
			w.notice(fmt.Sprintf("server %s responds again", w.server))
		}
		w.connected, w.answered, w.told, w.given, w.cause = true, true, false, false, nil
	}
	if answered || len(w.calls) == 0 {
		w.restart()
	}
}

// contact notes that there is a connection.
func (w *watch) contact() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.connected {
		w.connected = true
		w.restart()
	}
}

// retrying notes why calls are made again.
func (w *watch) retrying(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cause = err
	switch {
	case !w.answered && (w.hasty && w.connected || neverRPC(err)):
		w.giveUp(0)
	case w.answered && !w.told && len(w.calls) > 0:
		w.next = brokenNotice
		w.arm()
	}
}

// neverRPC reports whether a peer cannot be a server of RPC over RDMA: it has ended the
// stream because its receive is shorter than a call, as rping's server does.
func neverRPC(err error) bool {
	const layer, etype, code = 1, 2, 5 // RFC 5041 §7.2
	var end *rdmap.TerminateError
	return errors.As(err, &end) && end.Remote && end.Layer == layer && end.EType == etype && end.Code == code
}

// givenUp reports whether the server was given up.
func (w *watch) givenUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.given
}

// giveUp ends all calls. The lock is held.
func (w *watch) giveUp(waited time.Duration) {
	w.given = true
	for cancel := range w.calls {
		(*cancel)(&silentError{w.server, waited, !w.answered, w.cause})
	}
}

// restart begins to count the silence anew. The lock is held.
func (w *watch) restart() {
	w.since, w.next = time.Now(), silentNotice
	if w.cause != nil {
		w.next = brokenNotice
	}
	w.arm()
}

// arm sets the timer to what comes next. The lock is held.
func (w *watch) arm() {
	if w.timer != nil {
		w.timer.Stop()
	}
	limit, limited := w.bound()
	wait := limit
	switch {
	case len(w.calls) == 0:
		return
	case w.answered && (!limited || w.next < limit):
		wait = w.next
	case !limited:
		return
	}
	w.timer = time.AfterFunc(time.Until(w.since.Add(wait)), w.tick)
}

// bound is how long the server may keep silent, if there is a limit: how long a
// connection may take is the caller's. The lock is held.
func (w *watch) bound() (limit time.Duration, limited bool) {
	switch {
	case w.given:
		return hurriedTime, true
	case w.answered:
		return w.silent, w.silent > 0
	}
	return w.limit, w.connected
}

// tick reports a server that does not answer, and gives it up in the end.
func (w *watch) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := time.Since(w.since)
	if len(w.calls) == 0 {
		return
	}
	if limit, limited := w.bound(); limited && waited >= limit {
		w.giveUp(waited)
		return
	}
	if w.answered && waited >= w.next {
		w.told = true
		text := fmt.Sprintf("server %s is not responding, still trying (%s)", w.server, seconds(waited))
		if w.cause != nil {
			text += ": " + brief(w.cause)
		}
		w.notice(text)
		w.next += min(max(w.next, silentNotice), mostNotice)
	}
	w.arm()
}

// seconds writes a time to the second.
func seconds(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
}

// brief is what an error says of the system's, where that is its reason.
func brief(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
