package cm_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// closed reports whether the other side has closed nc, in a bubble.
func closed(t *testing.T, nc net.Conn) bool {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := nc.Read(make([]byte, 1))
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// Claims: S-6.4.1-1
func TestListenersAreLimitedByTheirRNIC(t *testing.T) {
	e := newEndOf(t, verbs.Config{Limits: verbs.Limits{Listeners: 1}}, verbs.QPConfig{})
	ln, err := cm.Listen(t.Context(), e.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = cm.Listen(t.Context(), e.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if !errors.Is(err, verbs.ErrResources) || !strings.Contains(err.Error(), "Limits.Listeners") {
		t.Errorf("a second listener: %v", err)
	}
	if u := e.rnic.Usage(); u.Listeners != 1 {
		t.Errorf("%d listeners are counted, expected 1", u.Listeners)
	}
	if err := ln.Close(); err != nil {
		t.Error(err)
	}
	again, err := cm.Listen(t.Context(), e.rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
	if n := e.rnic.Stats().Limits["Listeners"]; n != 1 {
		t.Errorf("the limit was met %d times, expected once", n)
	}
}

// Claims: V-5.1.4-1 V-9.2.1.3-4
func TestListenersAreClosedWithTheirRNIC(t *testing.T) {
	nettest.CheckLeaks(t)
	rnic, err := verbs.Open(verbs.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ln, err := cm.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if err := rnic.Close(); err != nil {
		t.Error(err)
	}
	if _, err := ln.Accept(t.Context()); !errors.Is(err, cm.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if nc, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		_ = nc.Close()
		t.Error("it still takes connections")
	}
	if _, err := cm.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{}); !errors.Is(err, verbs.ErrRNIC) {
		t.Errorf("a listener of a closed RNIC: %v", err)
	}
}

// The connections that wait at all listeners of an RNIC are limited together: a
// listener that has one in start-up drops that one for the next, and one that
// has none takes no more.
//
// Claims: S-6.4.1-1
func TestPendingConnectionsAreLimitedByTheirRNIC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := newEnd(t, verbs.QPConfig{}), newEndOf(t, verbs.Config{Limits: verbs.Limits{PendingConnections: 2}}, verbs.QPConfig{})
		pending := func(want int) {
			t.Helper()
			synctest.Wait()
			if u := b.rnic.Usage(); u.PendingConnections != want {
				t.Errorf("%d connections are counted, expected %d", u.PendingConnections, want)
			}
		}
		busy, idle := newPipes(), newPipes()
		ln := newListener(t, b, busy, cm.ListenConfig{})
		other := newListener(t, b, idle, cm.ListenConfig{})
		dialed := make(chan error, 1)
		go func() {
			_, err := cm.Connect(t.Context(), a.qp, busy.dial(), cm.Params{})
			dialed <- err
		}()
		pending(1) // a request that waits for Accept
		silent := busy.dial()
		pending(2)
		third := busy.dial()
		pending(2)
		if !closed(t, silent) || closed(t, third) {
			t.Error("the oldest in start-up is to make room for the next")
		}
		if late := idle.dial(); !closed(t, late) {
			t.Error("a listener took a connection beyond the limit of the RNIC")
		}
		if n := b.rnic.Stats().Limits["PendingConnections"]; n != 2 {
			t.Errorf("the limit was met %d times, expected twice", n)
		}

		// What is accepted does not count, nor what has gone.
		req, err := ln.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		pending(1)
		if _, err := req.Accept(t.Context(), b.qp, cm.Params{}); err != nil {
			t.Error(err)
		}
		if err := <-dialed; err != nil {
			t.Error(err)
		}
		_ = third.Close()
		pending(0)
		if next := idle.dial(); closed(t, next) {
			t.Error("there is room, and a connection is refused")
		}
		_ = ln.Close()
		_ = other.Close()
		pending(0)
	})
}

// Requests that wait at a listener count until they expire or it is closed.
func TestARequestCountsUntilItExpiresOrItsListenerIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newEnd(t, verbs.QPConfig{})
		cfg := cm.ListenConfig{}
		cfg.MPA.DecisionTimeout = time.Second
		pipes := newPipes()
		ln := newListener(t, b, pipes, cfg)
		ask := func() {
			a := newEnd(t, verbs.QPConfig{})
			go func() { _, _ = cm.Connect(t.Context(), a.qp, pipes.dial(), cm.Params{}) }()
			synctest.Wait()
		}
		ask()
		time.Sleep(2 * time.Second) // in the bubble: the first has expired
		if n := b.rnic.Usage().PendingConnections; n != 0 {
			t.Errorf("%d connections are counted, expected none: the request has expired", n)
		}
		ask()
		if n := b.rnic.Usage().PendingConnections; n != 1 {
			t.Errorf("%d connections are counted, expected 1", n)
		}
		_ = ln.Close()
		if n := b.rnic.Usage().PendingConnections; n != 0 {
			t.Errorf("%d connections are counted when the listener is closed", n)
		}
	})
}
