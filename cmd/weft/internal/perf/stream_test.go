package perf

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
)

// streams returns the two ends of a plain TCP connection over loopback.
func streams(t *testing.T) (driver, peer *tcpStream) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	a, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	b, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return newTCPStream(a.(*net.TCPConn), 1<<16), newTCPStream(b.(*net.TCPConn), 1<<16)
}

// Each run leaves the connection as it found it, or the next one would fail.
func TestBothEndsOfPlainTCPAgreeOnEveryRun(t *testing.T) {
	driver, peer := streams(t)
	for _, r := range []run{
		{Kind: stream, Op: Write, Size: 64, N: 1000},
		{Kind: stream, Op: Read, Size: 64, N: 1000},
		{Kind: echo, Op: Send, Size: 4096, N: 10},
		{Kind: echo, Op: Read, Size: 5, N: 10},
		{Kind: stream, Op: Read, Size: 1 << 16, N: 33},
		{Kind: stream, Op: FetchAdd, Size: 8, N: 1},
		{Kind: echo, Op: CmpSwap, Size: 8, N: 3},
	} {
		answered := make(chan error, 1)
		go func() {
			if r.Kind == stream {
				answered <- peer.answer(t.Context(), &r)
			} else {
				answered <- peer.pong(t.Context(), &r)
			}
		}()
		if r.Kind == stream {
			if err := driver.transfer(t.Context(), &r); err != nil {
				t.Fatalf("%+v: %v", r, err)
			}
		} else {
			trips := make([]time.Duration, r.N)
			if err := driver.pingpong(t.Context(), &r, trips); err != nil || slices.Min(trips) <= 0 {
				t.Fatalf("%+v: %v with round trips of %v", r, err, trips)
			}
		}
		if err := nettest.Await(t, answered); err != nil {
			t.Fatalf("%+v: peer: %v", r, err)
		}
	}
}
