package rpctcp

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

// packets has a server serve datagrams, and returns a socket connected to it.
func packets(t *testing.T, s *Server) (nc net.Conn, done <-chan error) {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.ServePacket(context.Background(), pc) }()
	nc, err = net.Dial("udp", pc.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return nc, ended
}

// ask sends datagrams and returns the first one that comes back.
func ask(t *testing.T, nc net.Conn, datagrams ...[]byte) []byte {
	t.Helper()
	for _, b := range datagrams {
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	b := make([]byte, 1<<16)
	n, err := nc.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func TestDatagramsAreAnswered(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Network != "udp" || r.Session == nil || r.SessionEnd != nil || r.Back != nil {
			t.Errorf("request %+v", r)
		}
		return echo(ctx, r)
	})})
	nc, done := packets(t, s)
	if got, want := ask(t, nc, callOf(1, "args")), replyOf(1, "args"); !bytes.Equal(got, want) {
		t.Errorf("received % x, want % x", got, want)
	}
	longest := callOf(2, strings.Repeat("args", (maxCallDatagram-40)/4))
	if got, want := ask(t, nc, longest), replyOf(2, string(longest[40:])); !bytes.Equal(got, want) {
		t.Errorf("received %d octets, want %d", len(got), len(want))
	}
	// What is no call, or too long, gets no answer, and hurts nobody else.
	got := ask(t, nc, nil, []byte("junk"), replyOf(3, "results."), append(longest, "args"...), callOf(4, "args"))
	if want := replyOf(4, "args"); !bytes.Equal(got, want) {
		t.Errorf("received % x, want % x", got, want)
	}
	if err := s.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := nettest.Await(t, done); !errors.Is(err, ErrServerClosed) {
		t.Errorf("ServePacket returned %v, want %v", err, ErrServerClosed)
	}
}

func TestDatagramsOfOthersAreDropped(t *testing.T) {
	nettest.CheckLeaks(t)
	var asked atomic.Int32
	s := newServer(t, ServerConfig{Handler: echo, Allow: func(net.Addr) bool { return asked.Add(1) > 1 }})
	nc, _ := packets(t, s)
	first := ask(t, nc, callOf(1, "args"), callOf(2, "args"))
	if asked.Load() != 2 {
		t.Errorf("the list was asked %d times", asked.Load())
	}
	if !bytes.Equal(first, replyOf(1, "args")) && !bytes.Equal(first, replyOf(2, "args")) {
		t.Errorf("received % x", first)
	}
}

// A datagram with a forged source address makes a server send that address at most three
// times as much.
func TestDatagramsAreNotAnsweredByFarLongerOnes(t *testing.T) {
	nettest.CheckLeaks(t)
	call := callOf(1, "args")
	s := newServer(t, ServerConfig{Handler: oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		reply := r.Buffer(0)
		for len(reply) < 3*len(call)+4 {
			reply = append(reply, 0, 0, 0, byte(r.XID))
		}
		if r.XID == 3 {
			reply = reply[:3*len(call)]
		}
		return reply, nil
	})})
	nc, _ := packets(t, s)
	// Answers come in any order: those that are too long would have come by the last.
	for range 10 {
		if got := ask(t, nc, callOf(1, "args"), callOf(2, "args"), callOf(3, "args")); len(got) != 3*len(call) {
			t.Errorf("received %d octets, want %d", len(got), 3*len(call))
		}
	}
}
