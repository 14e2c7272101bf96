package main

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// TestARelayCarriesOctetsAndTheEndBothWays sends more than a relay has room for.
func TestARelayCarriesOctetsAndTheEndBothWays(t *testing.T) {
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		return ln
	}
	far, near := listen(), listen()
	go serveRelay(near, far.Addr().String(), time.Millisecond)
	go func() { // returns what came, when all has come
		c, err := far.Accept()
		if err != nil {
			return
		}
		all, _ := io.ReadAll(c)
		c.Write(all)
		c.Close()
	}()
	c, err := net.Dial("tcp", near.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	out := make([]byte, 5<<20)
	fillPattern(out, 3)
	if _, err := c.Write(out); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).CloseWrite()
	if in, err := io.ReadAll(c); err != nil || !bytes.Equal(in, out) {
		t.Errorf("%d octets came back of %d, or others: %v", len(in), len(out), err)
	}
}
