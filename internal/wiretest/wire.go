// This file is the kinds of connection that tests use.

package wiretest

import (
	"context"
	"net"
	"sync"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/mpa"
)

// A Wire is a kind of connection between a Peer and a Side.
type Wire struct {
	Name    string
	Memory  bool // a pipe of package nettest, not TCP over loopback
	CRC     bool
	Markers bool // both sides ask for them
	Trickle bool // the Peer writes one octet at a time

	TLS        bool // below MPA; the Peer's is that of crypto/tls
	Consortium bool // revision 0 of MPA, version 0 of DDP and RDMAP
}

// Wires are the kinds of connection that every offence is tried on: with and without
// what changes the way in, whole and octet by octet.
var Wires = []Wire{
	{Name: "TCP,CRC", CRC: true},
	{Name: "TCP", CRC: false},
	{Name: "memory,CRC,markers", Memory: true, CRC: true, Markers: true},
	{Name: "memory,octets", Memory: true, CRC: false, Trickle: true},
	{Name: "TLS,CRC", TLS: true, CRC: true},
}

// Config returns what a Side of the wire asks for.
func (w Wire) Config() mpa.Config {
	cfg := mpa.Config{NoCRC: !w.CRC, Markers: w.Markers}
	if w.Consortium {
		cfg.Profile = mpa.ProfileRDMAC
	}
	return cfg
}

// Startup returns what a Peer asks for.
func (w Wire) Startup() iwarptest.Startup {
	return iwarptest.Startup{CRC: w.CRC, Markers: w.Markers, Consortium: w.Consortium}
}

// Listen returns a listener for Dial.
func (w Wire) Listen(ctx context.Context) (net.Listener, error) {
	if w.Memory {
		return &pipes{conns: make(chan net.Conn), done: make(chan struct{})}, nil
	}
	var lc net.ListenConfig
	lc.SetMultipathTCP(false)
	return lc.Listen(ctx, "tcp", "127.0.0.1:0")
}

// Dial connects to a listener of Listen.
func (w Wire) Dial(ctx context.Context, ln net.Listener) (net.Conn, error) {
	if p, ok := ln.(*pipes); ok {
		return p.dial(ctx)
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", ln.Addr().String())
}

// Pair returns both ends of a connection.
func (w Wire) Pair(ctx context.Context) (a, b net.Conn, err error) {
	if w.Memory {
		a, b := iwarptest.Pipe()
		return a, b, nil
	}
	ln, err := w.Listen(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if a, err = w.Dial(ctx, ln); err != nil {
		return nil, nil, err
	}
	if b, err = ln.Accept(); err != nil {
		_ = a.Close()
	}
	return a, b, err
}

// pipes is a net.Listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	a, b := iwarptest.Pipe()
	select {
	case p.conns <- b:
		return a, nil
	case <-p.done:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-p.conns:
		return nc, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return iwarptest.Addr("listener") }
