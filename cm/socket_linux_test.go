package cm_test

import (
	"errors"
	"math"
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
)

// optionOf asks the system for an option of SOL_SOCKET.
func optionOf(t *testing.T, c syscall.Conn, option int) (n int, err error) {
	t.Helper()
	rc, cerr := c.SyscallConn()
	if cerr == nil {
		cerr = rc.Control(func(fd uintptr) { n, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, option) })
	}
	if cerr != nil {
		t.Fatal(cerr)
	}
	return n, err
}

// reno is part of every Linux, and open to all.
const reno = "reno"

func TestTheCongestionControlIsTheOneNamed(t *testing.T) {
	c, _ := nettest.TCPPair(t, "tcp4")
	if err := (cm.Socket{Congestion: reno}).Apply(c); err != nil {
		t.Error(err)
	}
	if got, err := cm.SocketOf(c); err != nil || got.Congestion != reno {
		t.Errorf("%q, %v, expected %q", got.Congestion, err, reno)
	}
}

// Accepted connections have the listener's congestion control.
func TestTheCongestionControlOfAListenerIsThatOfItsConnections(t *testing.T) {
	ln := nettest.Listen(t, "tcp4")
	if err := (cm.Socket{Congestion: reno}).Apply(ln); err != nil {
		t.Fatal(err)
	}
	if got := acceptedSocket(t, ln); got.Congestion != reno {
		t.Errorf("%q, expected %q", got.Congestion, reno)
	}
}

func TestACongestionControlThatTheSystemHasNotIsNamed(t *testing.T) {
	c, _ := nettest.TCPPair(t, "tcp4")
	err := cm.Socket{Congestion: "no-such"}.Apply(c)
	const want = `cm: socket: congestion control "no-such": the system has none of that name: no such file or directory; ` +
		`/proc/sys/net/ipv4/tcp_available_congestion_control lists those loaded, modules tcp_* provide others`
	if !errors.Is(err, unix.ENOENT) || err.Error() != want {
		t.Errorf("%v\nexpected %s", err, want)
	}
}

// The largest size that can be asked for is above any limit in use.
func TestABufferAboveTheLimitOfTheSystemIsAnError(t *testing.T) {
	for _, s := range []cm.Socket{{SendBuffer: math.MaxInt32}, {ReceiveBuffer: math.MaxInt32}} {
		c, _ := nettest.TCPPair(t, "tcp4")
		if err := s.Apply(c); err == nil {
			t.Errorf("%+v was granted", s)
		}
	}
}

func TestABufferHasTheSizeThatWasAskedFor(t *testing.T) {
	c, _ := nettest.TCPPair(t, "tcp4")
	s := cm.Socket{SendBuffer: 1 << 15, ReceiveBuffer: 1 << 16}
	if err := s.Apply(c); err != nil {
		t.Fatal(err)
	}
	for _, b := range []struct{ option, size int }{{unix.SO_SNDBUF, s.SendBuffer}, {unix.SO_RCVBUF, s.ReceiveBuffer}} {
		if got, err := optionOf(t, c, b.option); err != nil || got != 2*b.size {
			t.Errorf("option %d is %d, %v, expected the double of %d", b.option, got, err, b.size)
		}
	}
}

// A buffer that was set is fixed; one that was not is still the system's. Linux tells
// which since 5.15, and what it did not say before cannot be had another way.
func TestABufferThatIsNotSetIsStillTunedByTheSystem(t *testing.T) {
	const send, receive = 1, 2 // of SO_BUF_LOCK
	for _, v := range []struct {
		s    cm.Socket
		want int
	}{
		{cm.Socket{}, 0},
		{cm.Socket{Congestion: reno}, 0},
		{cm.Socket{SendBuffer: 1 << 16}, send},
		{cm.Socket{ReceiveBuffer: 1 << 16}, receive},
		{cm.Socket{SendBuffer: 1 << 16, ReceiveBuffer: 1 << 16}, send | receive},
	} {
		c, _ := nettest.TCPPair(t, "tcp4")
		if err := v.s.Apply(c); err != nil {
			t.Error(err)
		}
		got, err := optionOf(t, c, unix.SO_BUF_LOCK)
		if errors.Is(err, unix.ENOPROTOOPT) {
			t.Skip("Linux before 5.15 does not say which buffers are fixed")
		}
		if err != nil || got != v.want {
			t.Errorf("%+v: %d is fixed, %v, expected %d", v.s, got, err, v.want)
		}
	}
}

// acceptedSocket has the options of a connection that ln gets.
func acceptedSocket(t *testing.T, ln *net.TCPListener) cm.Socket {
	t.Helper()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	nc, err := ln.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	s, err := cm.SocketOf(nc)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
