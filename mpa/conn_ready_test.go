package mpa

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/iwarptest"
)

// The last message in streaming mode goes before the first FPDU, as it is.
func TestStreamMessageGoesBeforeTheFirstFPDU(t *testing.T) {
	for _, w := range []struct {
		name string
		pair func() (net.Conn, net.Conn)
	}{
		{"TCP", func() (net.Conn, net.Conn) { return nettest.TCPPair(t, "tcp4") }},
		{"memory", func() (net.Conn, net.Conn) { return iwarptest.Pipe() }},
	} {
		x, y := w.pair()
		c := NewConn(x, Params{Initiator: true})
		if err := c.StreamMessage(t.Context(), []byte("go on\n")); err != nil {
			t.Fatal(err)
		}
		c.Append([]byte("header"), nil)
		if _, err := c.Flush(true); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, 8)
		if _, err := io.ReadFull(y, got); err != nil || string(got) != "go on\n\x00\x06" {
			t.Errorf("%s: the peer reads %q, %v", w.name, got, err)
		}
		if err := c.StreamMessage(t.Context(), []byte("late")); err == nil {
			t.Errorf("%s: a message in streaming mode was sent after an FPDU", w.name)
		}
		_ = x.Close()
		_ = y.Close()
	}
}

// A peer that does not read holds a message up no longer than the context lasts.
func TestStreamMessageEndsWithItsContext(t *testing.T) {
	x, y := net.Pipe() // without a buffer
	defer y.Close()
	c := NewConn(x, Params{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	err := c.StreamMessage(ctx, []byte("anybody?"))
	if e := (*Error)(nil); !errors.As(err, &e) || e.Code != CodeClosed || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
}

// What is closed by either side cannot be set up; octets that have arrived early
// do no harm.
func TestEstablishedTellsWhatCanBeSetUp(t *testing.T) {
	for _, tt := range []struct {
		name string
		do   func(own, peer *net.TCPConn) error
		ok   bool
	}{
		{"as it was made", func(own, peer *net.TCPConn) error { return nil }, true},
		{"octets have arrived", func(own, peer *net.TCPConn) error {
			_, err := peer.Write([]byte("early"))
			return err
		}, true},
		{"closed", func(own, peer *net.TCPConn) error { return own.Close() }, false},
		{"closed by the peer", func(own, peer *net.TCPConn) error { return peer.Close() }, false},
		{"reset by the peer", func(own, peer *net.TCPConn) error {
			_ = peer.SetLinger(0)
			return peer.Close()
		}, false},
	} {
		x, y := nettest.TCPPair(t, "tcp4")
		c := NewConn(x, Params{})
		if err := c.Established(); err != nil {
			t.Fatalf("%s: %v before", tt.name, err)
		}
		if err := tt.do(x, y); err != nil {
			t.Fatal(err)
		}
		// Loopback delivers before the call returns.
		if err := c.Established(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
		_ = x.Close()
		_ = y.Close()
	}
	x, _ := net.Pipe()
	c := NewConn(x, Params{})
	if err := c.Established(); err != nil {
		t.Errorf("a pipe: %v", err)
	}
	_ = x.Close()
	if err := c.Established(); err == nil {
		t.Error("a closed pipe is established")
	}
}
