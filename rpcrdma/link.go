// This file connects a client, and again when the connection is lost.

package rpcrdma

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/rpcrdma/wire"
	"github.com/weft-rdma/weft/verbs"
)

// A link is a client's connection, or the way to the next one. The client's lock
// guards it.
type link struct {
	r       *requester    // of the connection; nil without one
	dialing chan struct{} // is closed when the attempt under way has ended; nil: there is none
	err     error         // of the last attempt

	unanswered bool      // CONF_RDMA was not answered
	failed     int       // attempts, or connections without a reply, in a row
	next       time.Time // not before there is another
}

// requester returns the requester of the connection, and makes one first if there
// is none. Who gets it calls leave afterwards. When so many attempts in a row have failed it returns why the last
// did; 0 is never.
func (c *Client) requester(ctx context.Context, expired <-chan time.Time, attempts int) (*requester, error) {
	for {
		r, wait, ended, err := c.dial()
		if r != nil || err != nil {
			return r, err
		}
		later := time.NewTimer(wait)
		if ended != nil {
			later.Stop()
		}
		select {
		case <-ended:
			err = c.finalError(attempts)
		case <-later.C:
		case <-expired:
			err = c.timeoutError()
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.ctx.Done():
			err = ErrClientClosed
		}
		later.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// dial returns the requester if there is a connection. Otherwise it returns how
// long to wait before the next attempt, or a channel that is closed when the
// attempt in progress has ended.
func (c *Client) dial() (r *requester, wait time.Duration, ended <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.link
	switch {
	case c.closed:
		return nil, 0, nil, ErrClientClosed
	case l.r != nil:
		l.r.callers++
		return l.r, 0, nil, nil
	case l.dialing != nil:
		return nil, 0, l.dialing, nil
	}
	if wait = time.Until(l.next); wait > 0 {
		return nil, wait, nil, nil
	}
	l.dialing = make(chan struct{})
	c.conns.Add(1)
	go c.connect()
	return nil, 0, l.dialing, nil
}

// usedUp reports whether so many attempts in a row have failed; 0 is never.
func (c *Client) usedUp(attempts int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return attempts > 0 && c.link.failed >= attempts
}

// finalError returns the error of the last attempt if calls fail with it.
func (c *Client) finalError(attempts int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.link
	var rejected *cm.RejectedError
	switch {
	case l.r != nil || l.err == nil || l.dialing != nil:
		return nil
	case c.closed:
		return ErrClientClosed
	case errors.Is(l.err, verbs.ErrRNIC) || attempts > 0 && l.failed >= attempts:
		return l.err
	case errors.As(l.err, &rejected) && !c.cfg.RetryRejected:
		return l.err
	}
	return nil
}

// timeoutError is the error of a call that has expired before it was sent.
func (c *Client) timeoutError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.link.err != nil {
		return fmt.Errorf("%w: %w", ErrTimeout, c.link.err)
	}
	return ErrTimeout
}

// connect makes one attempt to connect, and runs the connection until it ends.
func (c *Client) connect() {
	defer c.conns.Done()
	e, err := c.open()
	if err != nil {
		c.dialed(nil, fmt.Errorf("rpcrdma: connecting to %s: %w", c.cfg.Address, err))
		return
	}
	r := newRequester(e, requesterConfig{
		rules: c.cfg.Rules, credits: uint32(c.cfg.Credits), inlineResults: c.cfg.InlineResults,
		logger: c.cfg.Logger, ended: c.lost, dropped: &c.stats.dropped,
	})
	e.requester = r
	if c.cfg.Reverse != nil {
		e.responder = newResponder(e, responderConfig{
			handler: c.cfg.Reverse, rules: wire.Rules{NoChunks: true}, credits: uint32(c.cfg.ReverseCredits), logger: c.cfg.Logger,
		})
	}
	defer context.AfterFunc(c.ctx, func() { e.fail(ErrClientClosed) })()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.run() // the requester gets its error
		if s, ok := e.responder.(*responder); ok {
			s.handlers.Wait()
			s.session.close()
			s.closeAccounts()
		}
	}()
	if c.cfg.Configure {
		c.configure(r)
	}
	c.dialed(r, nil)
	select {
	case <-e.conn.KeyLimitNear():
		c.retire(r)
		<-done
	case <-done:
	}
}

// retire has calls use another connection, since the key of this one is nearly used up, and
// closes it when those in progress have ended.
func (c *Client) retire(r *requester) {
	c.mu.Lock()
	if l := &c.link; l.r == r {
		l.r, l.failed, l.next = nil, 0, time.Time{}
	}
	r.retired = true
	unused := r.callers == 0
	c.mu.Unlock()
	if unused {
		r.e.closeGracefully()
	}
}

// leave ends the use of a requester by a call.
func (c *Client) leave(r *requester) {
	c.mu.Lock()
	r.callers--
	unused := r.retired && r.callers == 0
	c.mu.Unlock()
	if unused {
		// The call is over, and so need not wait. Close waits for the connection's end.
		go r.e.closeGracefully()
	}
}

// open dials, and returns an endpoint that is connected and does not run yet.
func (c *Client) open() (*endpoint, error) {
	e, err := newEndpoint(c.pd, c.pool, c.cfg.endpoint())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.DialTimeout)
	defer cancel()
	conn, err := c.cfg.Dial(ctx, e.qp, e.params(c.cfg.Connection))
	if err != nil {
		e.discard()
		return nil, err
	}
	e.connected(conn, conn.ORD())
	return e, nil
}

// dialed ends an attempt to connect.
func (c *Client) dialed(r *requester, err error) {
	c.mu.Lock()
	c.attempted(r, err)
	again := c.link.err != nil && !c.closed
	err = c.link.err
	c.mu.Unlock()
	if again {
		c.cfg.Retrying(err)
	}
}

// attempted records the result of an attempt to connect. The lock is held.
func (c *Client) attempted(r *requester, err error) {
	l := &c.link
	close(l.dialing)
	l.dialing, l.err = nil, err
	if err != nil {
		c.backOff()
		return
	}
	c.stats.connections.Add(1)
	r.mu.Lock()
	dead := r.dead
	r.mu.Unlock()
	switch {
	case c.closed:
		r.e.fail(ErrClientClosed)
	case dead != nil: // already, so that lost has not found it
		l.err = dead
		c.backOff()
	default:
		l.r = r
		c.armIdle()
	}
}

// backOff sets when the next attempt may be made: later each time. The lock is
// held.
func (c *Client) backOff() {
	l := &c.link
	wait := c.cfg.MaxBackoff
	if l.failed < 32 && c.cfg.Backoff<<l.failed > 0 {
		wait = min(wait, c.cfg.Backoff<<l.failed)
	}
	l.failed++
	l.next = time.Now().Add(wait)
}

// lost detaches r, whose connection is ending.
func (c *Client) lost(r *requester) {
	r.mu.Lock()
	heard, dead := r.replies, r.dead
	r.mu.Unlock()
	c.mu.Lock()
	l := &c.link
	if l.r != r {
		c.mu.Unlock()
		return
	}
	l.r = nil
	if heard == 0 {
		c.backOff()
	} else {
		l.failed, l.next = 0, time.Time{}
	}
	again := len(c.xids) > 0 && !c.closed
	c.mu.Unlock()
	if again {
		c.cfg.Retrying(dead)
	}
}

// hangUp closes a connection without calls.
func (c *Client) hangUp() {
	c.mu.Lock()
	r := c.link.r
	if r == nil || len(c.xids) > 0 || c.closed || r.e.busy() {
		c.mu.Unlock()
		return
	}
	c.link.r = nil
	c.mu.Unlock()
	r.e.closeGracefully()
}

// closeGracefully waits for what is outstanding and closes the connection. The RNIC limits
// how long that takes (verbs.Config.CloseTimeout).
func (e *endpoint) closeGracefully() { _ = e.qp.Close(e.ctx) }
