// This file watches whether a server answers. It reports a server that stops answering,
// and its return, and ends the wait if there is a limit.

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

const (
	// contactTime limits connecting to a server, and its first answer, without
	// --timeout.
	contactTime = 10 * time.Second
	// brokenNotice is the time until the first notice about a server without a
	// connection, and silentNotice with one. The interval between later notices doubles
	// up to mostNotice.
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

// A watch is a caller that watches whether its server answers. The lock protects the
// fields below it; a timer is set while calls are outstanding.
type watch struct {
	caller oncrpc.Caller
	server string        // as its user knows it
	limit  time.Duration // of the first answer
	silent time.Duration // for which the server may not answer afterwards; 0: any
	notice func(text string)

	// failOnDisconnect makes calls fail with the connection until the first answer: a
	// peer of another protocol closes it.
	failOnDisconnect bool

	insecure atomic.Bool // trouble with TLS has been reported

	mu          sync.Mutex
	calls       map[*context.CancelCauseFunc]bool
	connected   bool // once
	answered    bool // once
	silentSince time.Time
	nextNotice  time.Duration // when the next notice is due, after silentSince
	reported    bool          // the silence has been reported
	abandoned   bool          // given up: until the server answers, calls wait hurriedTime
	cause       error         // why there is no connection, if known
	timer       *time.Timer
}

// newWatch makes a watch. Set its caller before use.
func newWatch(server string, limit, silent time.Duration, notice func(string)) *watch {
	return &watch{server: server, limit: limit, silent: silent, notice: notice, calls: make(map[*context.CancelCauseFunc]bool)}
}

// Call makes a call. It fails with a *silentError if the server is silent for too long.
func (w *watch) Call(ctx context.Context, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	return w.callBy(ctx, w.caller, call)
}

// callBy makes a call with any caller of the server.
func (w *watch) callBy(ctx context.Context, c oncrpc.Caller, call *oncrpc.ClientCall) (*oncrpc.ClientReply, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w.callStarted(&cancel)
	reply, err := c.Call(ctx, call)
	w.callEnded(&cancel, err == nil || refused(err))
	var silent *silentError
	if err != nil && errors.As(context.Cause(ctx), &silent) {
		err = silent
	}
	return reply, err
}

// Close closes the caller.
func (w *watch) Close() error { return w.caller.Close() }

// refused reports whether an error is an answer of the server.
func refused(err error) bool {
	var accept *oncrpc.AcceptError
	var reject *oncrpc.RejectError
	var remote *wire.RemoteError
	return errors.As(err, &accept) || errors.As(err, &reject) || errors.As(err, &remote)
}

func (w *watch) callStarted(call *context.CancelCauseFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[call] = true
	if len(w.calls) == 1 {
		w.restartTimer()
	}
}

func (w *watch) callEnded(call *context.CancelCauseFunc, answered bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, call)
	if answered {
		if w.reported {
			w.notice(fmt.Sprintf("server %s responds again", w.server))
		}
		w.connected, w.answered, w.reported, w.abandoned, w.cause = true, true, false, false, nil
	}
	if answered || len(w.calls) == 0 {
		w.restartTimer()
	}
}

// contact notes that there is a connection.
func (w *watch) contact() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.connected {
		w.connected = true
		w.restartTimer()
	}
}

// retrying notes why calls are repeated.
func (w *watch) retrying(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cause = err
	switch {
	case !w.answered && (w.failOnDisconnect && w.connected || neverRPC(err)):
		w.giveUp(0)
	case w.answered && !w.reported && len(w.calls) > 0:
		w.nextNotice = brokenNotice
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

// givenUp reports whether the server was given up, and has not answered since.
func (w *watch) givenUp() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.abandoned
}

// giveUp ends all calls. The caller holds the lock.
func (w *watch) giveUp(waited time.Duration) {
	w.abandoned = true
	for cancel := range w.calls {
		(*cancel)(&silentError{w.server, waited, !w.answered, w.cause})
	}
}

// restartTimer measures the silence from now. The caller holds the lock.
func (w *watch) restartTimer() {
	w.silentSince, w.nextNotice = time.Now(), silentNotice
	if w.cause != nil {
		w.nextNotice = brokenNotice
	}
	w.arm()
}

// arm sets the timer for the next notice or limit. The caller holds the lock.
func (w *watch) arm() {
	if w.timer != nil {
		w.timer.Stop()
	}
	limit, limited := w.patience()
	wait := limit
	switch {
	case len(w.calls) == 0:
		return
	case w.answered && (!limited || w.nextNotice < limit):
		wait = w.nextNotice
	case !limited:
		return
	}
	w.timer = time.AfterFunc(time.Until(w.silentSince.Add(wait)), w.tick)
}

// patience returns how long the server may be silent, if there is a limit. The caller
// of the server limits the time to connect. The caller holds the lock.
func (w *watch) patience() (limit time.Duration, limited bool) {
	switch {
	case w.abandoned:
		return hurriedTime, true
	case w.answered:
		return w.silent, w.silent > 0
	}
	return w.limit, w.connected
}

// tick reports a silent server, and gives it up at the limit.
func (w *watch) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	waited := time.Since(w.silentSince)
	if len(w.calls) == 0 {
		return
	}
	if limit, limited := w.patience(); limited && waited >= limit {
		w.giveUp(waited)
		return
	}
	if w.answered && waited >= w.nextNotice {
		w.reported = true
		text := fmt.Sprintf("server %s is not responding, still trying (%s)", w.server, seconds(waited))
		if w.cause != nil {
			text += ": " + brief(w.cause)
		}
		w.notice(text)
		w.nextNotice += min(max(w.nextNotice, silentNotice), mostNotice)
	}
	w.arm()
}

// seconds formats a time in whole seconds.
func seconds(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
}

// brief returns the system's part of an error, if it has one.
func brief(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Err != nil {
		return op.Err.Error()
	}
	return err.Error()
}
