// This file makes a client's connection: one attempt at a time, which all callers wait
// for, with a backoff that grows while attempts fail.

package rpctcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// An attempt is one attempt to connect, with the pause before it.
type attempt struct {
	done chan struct{}
	err  error // after done: nil for a link
}

// connected returns the present link, or the next one. When so many attempts in
// a row have failed, it returns why the last did; 0 is never.
func (c *Client) connected(ctx context.Context, attempts int) (*link, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c.mu.Lock()
		if c.closed {
			c.mu.Unlock()
			return nil, ErrClientClosed
		}
		if l := c.link; l != nil && l.ctx.Err() == nil && !l.retiring.Load() {
			c.mu.Unlock()
			return l, nil
		}
		a := c.attempt
		if a == nil {
			a = &attempt{done: make(chan struct{})}
			c.attempt = a
			pause := c.pause()
			c.links.Go(func() { c.connect(a, pause) })
		}
		c.mu.Unlock()
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if a.err != nil && (attempts > 0 && c.failed() >= attempts || isRefusal(a.err)) {
			return nil, a.err
		}
	}
}

func (c *Client) failed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failures
}

// pause is how long to wait before the next attempt. c.mu is held.
func (c *Client) pause() time.Duration {
	if c.failures == 0 {
		return 0
	}
	pause := c.cfg.Backoff
	for n := 1; n < c.failures && pause < c.cfg.MaxBackoff; n++ {
		pause *= 2
	}
	return min(pause, c.cfg.MaxBackoff)
}

// connect makes the attempt, and runs the link that it makes until the link ends.
func (c *Client) connect(a *attempt, pause time.Duration) {
	var nc, raw net.Conn
	var tls *secured
	select {
	case <-time.After(pause):
		nc, raw, tls, a.err = c.open()
	case <-c.ctx.Done():
		a.err = ErrClientClosed
	}
	c.mu.Lock()
	c.attempt = nil
	c.failures++ // until a reply has come
	if a.err == nil && c.closed {
		nc.Close()
		a.err = ErrClientClosed
	}
	if a.err != nil {
		closed := c.closed
		c.mu.Unlock()
		c.cfg.Logger.Info("cannot connect", "to", c.cfg.Address, "err", a.err)
		if !closed && !isRefusal(a.err) {
			c.cfg.Retrying(a.err)
		}
		close(a.done)
		return
	}
	l := newLink(c.ctx, nc, raw, origin.Of(nc.RemoteAddr()), &c.setting)
	if tls != nil {
		l.secure(tls)
	}
	c.link = l
	c.mu.Unlock()
	close(a.done)
	c.linkEnded(l, nc.RemoteAddr(), l.run())
}

// linkEnded detaches a link that has ended, and reports the calls that it lost.
func (c *Client) linkEnded(l *link, peer net.Addr, err error) {
	c.mu.Lock()
	if c.link == l {
		c.link = nil
	}
	if l.lost == 0 {
		c.failures = 0
	}
	c.mu.Unlock()
	if l.lost == 0 {
		return
	}
	c.cfg.Logger.Info("connection lost", "to", peer, "calls", l.lost, "err", err)
	if c.ctx.Err() == nil && !isAlert(err) { // else they are not sent again
		c.cfg.Retrying(&lostError{cmp.Or(err, errClosedByPeer)})
	}
}

// open connects once, with TLS if the configuration says so. nc is around raw.
func (c *Client) open() (nc, raw net.Conn, tls *secured, err error) {
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.DialTimeout)
	defer cancel()
	if raw, err = c.dial(ctx); err != nil {
		return nil, nil, nil, err
	}
	nc = raw
	if c.cfg.Wrap != nil {
		nc = c.cfg.Wrap(nc)
	}
	if c.cfg.TLS != nil {
		if tls, err = c.secured(ctx, nc); err != nil {
			nc.Close()
			return nil, nil, nil, err
		}
	}
	return nc, raw, tls, nil
}

// dial makes a connection.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	if c.cfg.Dial != nil {
		nc, err := c.cfg.Dial(ctx)
		if err != nil {
			return nil, fmt.Errorf("rpctcp: cannot connect: %w", err)
		}
		return nc, nil
	}
	if c.cfg.KeepPort && strings.HasPrefix(c.cfg.Network, "tcp") {
		return c.dialKeeping(ctx)
	}
	return c.dialAny(ctx)
}

// LocalPort is the port from which the last connection was made, with
// ClientConfig.KeepPort; 0 before there was any.
func (c *Client) LocalPort() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.port
}

// dialKeeping connects from the last connection's port if it can.
func (c *Client) dialKeeping(ctx context.Context) (nc net.Conn, err error) {
	if port := c.LocalPort(); port != 0 {
		d := net.Dialer{LocalAddr: &net.TCPAddr{Port: port}}
		d.SetMultipathTCP(false)
		nc, err = d.DialContext(ctx, c.cfg.Network, c.cfg.Address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("rpctcp: cannot connect: %w", err) // by the server: the port is right
		}
	}
	if nc == nil {
		if nc, err = c.dialAny(ctx); err != nil {
			return nil, err
		}
	}
	if t, ok := nc.(*net.TCPConn); ok {
		t.SetLinger(0)
		c.mu.Lock()
		c.port = t.LocalAddr().(*net.TCPAddr).Port
		c.mu.Unlock()
	}
	return nc, nil
}

// dialAny connects from any port, or any reserved one.
func (c *Client) dialAny(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	d.SetMultipathTCP(false) // NFS servers have no use for it, and captures show less
	if c.cfg.Reserved && strings.HasPrefix(c.cfg.Network, "tcp") {
		if nc, err := dialReserved(ctx, d, c.cfg.Network, c.cfg.Address); nc != nil || err != nil {
			return nc, err
		}
	}
	if c.cfg.KeepPort && strings.HasPrefix(c.cfg.Network, "tcp") {
		// Bind the port, so that no other connection has it. A port that the system
		// chooses while connecting may be shared with connections to other addresses,
		// which could keep it from being bound again.
		d.LocalAddr = new(net.TCPAddr)
	}
	nc, err := d.DialContext(ctx, c.cfg.Network, c.cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("rpctcp: cannot connect: %w", err)
	}
	return nc, nil
}

// Ports that a privileged process connects from, those left out in which
// well-known services lie closest.
const (
	firstReserved = 600
	lastReserved  = 1023
)

// dialReserved connects from one of those ports. It returns neither a connection nor an
// error if this process may use none of them.
func dialReserved(ctx context.Context, d net.Dialer, network, address string) (net.Conn, error) {
	const ports = lastReserved - firstReserved + 1
	start := rand.IntN(ports)
	for i := range ports {
		d.LocalAddr = &net.TCPAddr{Port: firstReserved + (start+i)%ports}
		nc, err := d.DialContext(ctx, network, address)
		switch {
		case err == nil:
			return nc, nil
		case errors.Is(err, os.ErrPermission):
			return nil, nil
		case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL):
			continue // also for a connection that was just closed
		}
		return nil, fmt.Errorf("rpctcp: cannot connect: %w", err)
	}
	return nil, nil
}
