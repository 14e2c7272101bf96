package cm_test

import (
	"crypto/tls"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/verbs"
)

// chosen are options that no system has by itself, and that all allow.
var chosen = cm.Socket{SendBuffer: 81920, ReceiveBuffer: 98304}

// A seen keeps what connections are made of; its method is a Wrap.
type seen struct {
	mu    sync.Mutex
	conns []syscall.Conn
}

func (s *seen) wrap(nc net.Conn) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns = append(s.conns, nc.(syscall.Conn))
	return nc
}

// buffersAre checks the buffers of every connection seen.
func (s *seen) buffersAre(t *testing.T, want cm.Socket, count int) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.conns) != count {
		t.Errorf("%d connections, expected %d", len(s.conns), count)
	}
	for _, c := range s.conns {
		buffersAre(t, c, want)
	}
}

func buffersAre(t *testing.T, c syscall.Conn, want cm.Socket) {
	t.Helper()
	got, err := cm.SocketOf(c)
	if err != nil {
		t.Error(err)
	}
	if got.SendBuffer != want.SendBuffer || got.ReceiveBuffer != want.ReceiveBuffer {
		t.Errorf("buffers of %d octets to send and %d to receive, expected %d and %d", got.SendBuffer, got.ReceiveBuffer, want.SendBuffer, want.ReceiveBuffer)
	}
}

// Claims: DDP-A-1
func TestSocketOptionsReachBothEndsOfAConnection(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	var conns seen
	ln := listen(t, b, "tcp4", cm.ListenConfig{Socket: chosen, Wrap: conns.wrap})
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	_, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{Socket: chosen, Wrap: conns.wrap})
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	conns.buffersAre(t, chosen, 2)
}

func TestSocketOptionsReachConnectionsOfTheCaller(t *testing.T) {
	nettest.CheckLeaks(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	var conns seen
	ln := newListener(t, b, nettest.Listen(t, "tcp4"), cm.ListenConfig{Socket: chosen, Wrap: conns.wrap})
	defer ln.Close()
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conns.wrap(nc)
	_, err = cm.Connect(t.Context(), a.qp, wrapping{wrapping{nc}}, cm.Params{Socket: chosen})
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	conns.buffersAre(t, chosen, 2)
}

// wrapping hides a connection as TLS does.
type wrapping struct{ net.Conn }

func (w wrapping) NetConn() net.Conn { return w.Conn }

func TestAnEmptySocketChangesNothing(t *testing.T) {
	c, _ := nettest.TCPPair(t, "tcp4")
	if err := chosen.Apply(c); err != nil {
		t.Fatal(err)
	}
	before, err := cm.SocketOf(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := (cm.Socket{}).Apply(c); err != nil {
		t.Error(err)
	}
	if after, err := cm.SocketOf(c); err != nil || after != before {
		t.Errorf("%+v, %v, expected %+v as before", after, err, before)
	}
	if err := (cm.Socket{}).Control("tcp4", "", nil); err != nil { // it does not look at the socket
		t.Error(err)
	}
}

// Of the three options each is set without the others.
func TestEachSocketOptionIsSetByItself(t *testing.T) {
	for _, s := range []cm.Socket{{SendBuffer: 81920}, {ReceiveBuffer: 98304}} {
		c, _ := nettest.TCPPair(t, "tcp4")
		want, err := cm.SocketOf(c)
		if err != nil {
			t.Fatal(err)
		}
		if s.SendBuffer > 0 {
			want.SendBuffer = s.SendBuffer
		} else {
			want.ReceiveBuffer = s.ReceiveBuffer
		}
		if err := s.Apply(c); err != nil {
			t.Error(err)
		}
		buffersAre(t, c, want)
	}
}

// Nothing listens at the port: it is the options that the error is about.
func TestSocketOptionsAreRefusedBeforeAConnectionBegins(t *testing.T) {
	e := newEnd(t, verbs.QPConfig{})
	gone := nettest.Listen(t, "tcp4")
	addr := gone.Addr().String()
	gone.Close()
	for _, tt := range []struct {
		s    cm.Socket
		want string
	}{
		{cm.Socket{SendBuffer: -1}, "send buffer of -1 octets: expected 0 (the system's choice) to 2147483647"},
		{cm.Socket{ReceiveBuffer: -5}, "receive buffer of -5 octets: expected 0 (the system's choice) to 2147483647"},
		{cm.Socket{Congestion: "no-such"}, `congestion control "no-such": `},
	} {
		_, err := cm.Dial(t.Context(), e.qp, "tcp4", addr, cm.Params{Socket: tt.s})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("dial with %+v: %v, expected %q", tt.s, err, tt.want)
		}
		ln, err := cm.Listen(t.Context(), e.rnic, "tcp4", "127.0.0.1:0", cm.ListenConfig{Socket: tt.s})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("listen with %+v: %v, expected %q", tt.s, err, tt.want)
		}
		if err == nil {
			ln.Close()
		}
	}
	if s := e.qp.State(); s != verbs.Idle {
		t.Errorf("the queue pair is %v, expected it to be Idle still", s)
	}
}

func TestConnectionsWithoutASocketHaveNoOptions(t *testing.T) {
	e := newEnd(t, verbs.QPConfig{})
	const want = "the connection has no socket"
	a, b := iwarptest.Pipe()
	defer b.Close()
	_, err := cm.Connect(t.Context(), e.qp, tls.Client(a, &tls.Config{}), cm.Params{Socket: chosen})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("connect: %v, expected %q", err, want)
	}
	if _, err := a.Write([]byte{1}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the connection is not closed: a write gives %v", err)
	}
	p := newPipes()
	defer p.Close()
	if _, err := cm.NewListener(e.rnic, p, cm.ListenConfig{Socket: chosen}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("listener: %v, expected %q", err, want)
	}
}

func TestAClosedSocketHasNoOptions(t *testing.T) {
	c, _ := nettest.TCPPair(t, "tcp4")
	c.Close()
	if err := chosen.Apply(c); !errors.Is(err, net.ErrClosed) {
		t.Errorf("apply: %v, expected %v", err, net.ErrClosed)
	}
	if _, err := cm.SocketOf(c); !errors.Is(err, net.ErrClosed) {
		t.Errorf("tell: %v, expected %v", err, net.ErrClosed)
	}
	ln := nettest.Listen(t, "tcp4")
	ln.Close()
	e := newEnd(t, verbs.QPConfig{})
	if _, err := cm.NewListener(e.rnic, ln, cm.ListenConfig{Socket: chosen}); !errors.Is(err, net.ErrClosed) {
		t.Errorf("listen: %v, expected %v", err, net.ErrClosed)
	}
}

func TestOnlyLinuxLetsAProgramChooseTheCongestionControl(t *testing.T) {
	c, _ := nettest.TCPPair(t, "tcp4")
	err := cm.Socket{Congestion: "reno"}.Apply(c)
	if runtime.GOOS != "linux" && !errors.Is(err, errors.ErrUnsupported) || runtime.GOOS == "linux" && err != nil {
		t.Errorf("%v", err)
	}
}
