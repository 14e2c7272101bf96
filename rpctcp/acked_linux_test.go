package rpctcp

import (
	"io"
	"net"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
)

// What a peer has taken shows without a step of this side's.
func TestTheSystemTellsWhatAPeerHasTaken(t *testing.T) {
	ln := nettest.Listen(t, "tcp4")
	ours, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	theirs, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer theirs.Close()
	before, ok := acked(ours)
	if !ok {
		t.Fatal("the system does not say")
	}
	const n = 1 << 20
	go ours.Write(make([]byte, n))
	if _, err := io.ReadFull(theirs, make([]byte, n)); err != nil {
		t.Fatal(err)
	}
	theirs.(*net.TCPConn).CloseWrite()
	io.Copy(io.Discard, ours) // what was acknowledged has arrived before the end
	if after, _ := acked(ours); after-before < n {
		t.Errorf("of %d octets %d were acknowledged", n, after-before)
	}
	if _, ok := acked(nil); ok {
		t.Error("acked reports a count without a connection")
	}
}
