// This file makes connections over loopback.

package nettest

import (
	"context"
	"net"
	"testing"
)

// Networks returns the loopback networks of this machine: "tcp4", and "tcp6" if it
// has one.
func Networks() []string {
	all := []string{"tcp4"}
	if l, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		_ = l.Close()
		all = append(all, "tcp6")
	}
	return all
}

// Listen listens on a free port of the loopback address of network, "tcp4" or
// "tcp6", until the test ends.
func Listen(t testing.TB, network string) *net.TCPListener {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "tcp6" {
		address = "[::1]:0"
	}
	var cfg net.ListenConfig
	cfg.SetMultipathTCP(false) // its sockets do not tell their segment size
	l, err := cfg.Listen(context.Background(), network, address)
	if err != nil {
		t.Fatalf("listen on loopback: %v", err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

// TCPPair returns both ends of a connection over loopback, closed when the test ends.
func TCPPair(t testing.TB, network string) (client, server *net.TCPConn) {
	t.Helper()
	l := Listen(t, network)
	defer l.Close()
	// The listener's backlog takes the connection before anybody accepts it.
	c, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatalf("dial loopback: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s, err := l.AcceptTCP()
	if err != nil {
		t.Fatalf("accept on loopback: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return c.(*net.TCPConn), s
}
