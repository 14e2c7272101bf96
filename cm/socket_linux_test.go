package cm_test

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
)

// procWords reads a setting of the system, or skips.
func procWords(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/sys/net/" + name)
	if err != nil {
		t.Skip(err)
	}
	return strings.Fields(string(text))
}

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

func TestTheCongestionControlIsTheOneNamed(t *testing.T) {
	for _, name := range procWords(t, "ipv4/tcp_allowed_congestion_control") {
		c, _ := nettest.TCPPair(t, "tcp4")
		if err := (cm.Socket{Congestion: name}).Apply(c); err != nil {
			t.Error(err)
		}
		if got, err := cm.SocketOf(c); err != nil || got.Congestion != name {
			t.Errorf("%q, %v, expected %q", got.Congestion, err, name)
		}
	}
}

// Those who connect have the listener's congestion control.
func TestTheCongestionControlOfAListenerIsThatOfItsConnections(t *testing.T) {
	for _, name := range procWords(t, "ipv4/tcp_allowed_congestion_control") {
		ln := nettest.Listen(t, "tcp4")
		if err := (cm.Socket{Congestion: name}).Apply(ln); err != nil {
			t.Fatal(err)
		}
		got := acceptedSocket(t, ln)
		if got.Congestion != name {
			t.Errorf("%q, expected %q", got.Congestion, name)
		}
	}
}

func TestACongestionControlThatTheSystemHasNotIsNamed(t *testing.T) {
	c, _ := nettest.TCPPair(t, "tcp4")
	err := cm.Socket{Congestion: "no-such"}.Apply(c)
	const want = `cm: socket: congestion control "no-such": the system has none of that name: no such file or directory; ` +
		`/proc/sys/net/ipv4/tcp_available_congestion_control lists those loaded, and modules tcp_* are others`
	if !errors.Is(err, unix.ENOENT) || err.Error() != want {
		t.Errorf("%v\nexpected %s", err, want)
	}
}

func TestACongestionControlThatIsNotOpenToAllSaysWhichAre(t *testing.T) {
	available, allowed := procWords(t, "ipv4/tcp_available_congestion_control"), procWords(t, "ipv4/tcp_allowed_congestion_control")
	i := slices.IndexFunc(available, func(name string) bool { return !slices.Contains(allowed, name) })
	if i < 0 {
		t.Skip("every congestion control is open to all here")
	}
	c, _ := nettest.TCPPair(t, "tcp4")
	err := unprivileged(t, func() error { return cm.Socket{Congestion: available[i]}.Apply(c) })
	want := fmt.Sprintf(`cm: socket: congestion control %q: operation not permitted without CAP_NET_ADMIN; `+
		`/proc/sys/net/ipv4/tcp_allowed_congestion_control lists those that are open to all`, available[i])
	if !errors.Is(err, unix.EPERM) || err.Error() != want {
		t.Errorf("%v\nexpected %s", err, want)
	}
}

// unprivileged calls f in a thread without capabilities, which ends with it.
func unprivileged(t *testing.T, f func() error) error {
	t.Helper()
	dropped, result := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlock it: the thread is of no use to others
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var none [2]unix.CapUserData
		err := unix.Capset(&header, &none[0])
		if dropped <- err; err == nil {
			result <- f()
		}
	}()
	if err := <-dropped; err != nil {
		t.Skip(err)
	}
	return <-result
}

func TestABufferAboveTheLimitOfTheSystemIsAnError(t *testing.T) {
	for _, v := range []struct {
		what, limit string
		of          func(octets int) cm.Socket
	}{
		{"send buffer", "core/wmem_max", func(n int) cm.Socket { return cm.Socket{SendBuffer: n} }},
		{"receive buffer", "core/rmem_max", func(n int) cm.Socket { return cm.Socket{ReceiveBuffer: n} }},
	} {
		most, err := strconv.Atoi(procWords(t, v.limit)[0])
		if err != nil || most > math.MaxInt32/2-2 {
			t.Skipf("%s is %d, %v", v.limit, most, err)
		}
		c, _ := nettest.TCPPair(t, "tcp4")
		if err := v.of(most).Apply(c); err != nil {
			t.Errorf("as much as is allowed: %v", err)
		}
		err = v.of(most + 2).Apply(c)
		want := fmt.Sprintf("cm: socket: %s of %d octets: the system allows %d, which /proc/sys/net/%s says: ask for less, or raise that", v.what, most+2, most, v.limit)
		if err == nil || err.Error() != want {
			t.Errorf("%v\nexpected %s", err, want)
		}
	}
}

// A buffer that was set stays as it is; one that was not is still the system's.
func TestABufferThatIsNotSetIsStillTunedByTheSystem(t *testing.T) {
	const send, receive = 1, 2 // of SO_BUF_LOCK
	for _, v := range []struct {
		s    cm.Socket
		want int
	}{
		{cm.Socket{}, 0},
		{cm.Socket{Congestion: "reno"}, 0},
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
			t.Skip("this system does not tell which buffers are fixed")
		}
		if err != nil || got != v.want {
			t.Errorf("%+v: %d is fixed, %v, expected %d", v.s, got, err, v.want)
		}
		for _, b := range []struct{ option, size int }{{unix.SO_SNDBUF, v.s.SendBuffer}, {unix.SO_RCVBUF, v.s.ReceiveBuffer}} {
			if got, err := optionOf(t, c, b.option); b.size > 0 && (err != nil || got != 2*b.size) {
				t.Errorf("%+v: option %d is %d, %v, expected the double of %d", v.s, b.option, got, err, b.size)
			}
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
