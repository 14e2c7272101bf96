package main

import (
	gocontext "context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAConnectionThatTakesLongIsWaitedFor is one to a listener that has no room: until it
// has, or the program gives up.
func TestAConnectionThatTakesLongIsWaitedFor(t *testing.T) {
	anEngine(t, false)
	listener, err := newSocket(unix.AF_INET)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	_, any := sockaddr(netip.AddrPortFrom(loopback, 0))
	if err := errors.Join(unix.Bind(listener, any), unix.Listen(listener, 0)); err != nil {
		t.Fatal(err)
	}
	var waiting *dialing
	for waiting == nil {
		d := new(identifier).dial(localOf(listener))
		if d.err != unix.EINPROGRESS {
			t.Fatal(d.err)
		}
		defer d.socket.Close()
		if _, err := unix.Getpeername(int(d.socket.Fd())); err == unix.ENOTCONN {
			waiting = d
		}
	}
	gone, cancel := gocontext.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	given := make(chan error, 1)
	go func() { given <- connected(gone, waiting.socket) }()
	select {
	case err := <-given:
		if !errors.Is(err, gocontext.Canceled) {
			t.Errorf("the program has given up: %v", err)
		}
	case <-time.After(connectTimeout / 3):
		t.Fatal("it is waited for after the program has given up")
	}
	fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	nc, err := waiting.wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = nc.Close()
}
