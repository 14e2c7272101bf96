package cm_test

import (
	"net"

	"github.com/weft-rdma/weft/iwarptest"
)

// pipes is a net.Listener of connections in memory.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) dial() net.Conn {
	a, b := iwarptest.Pipe()
	p.conns <- b
	return a
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
	close(p.done)
	return nil
}

func (p *pipes) Addr() net.Addr { return iwarptest.Addr("listener") }

// from is a connection that seems to come from an address.
type from struct {
	*iwarptest.Conn
	addr string
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.addr), Port: 700} }

// dialFrom connects from an address.
func (p *pipes) dialFrom(addr string) *iwarptest.Conn {
	a, b := iwarptest.Pipe()
	p.conns <- from{b, addr}
	return a
}
