// TLS, under Weft as in docs/tls.md, and over plain TCP as a Go program has it. Both ends
// are of this program: the certificate is made for the sample, and not verified.

package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/weft-rdma/weft/internal/tlsid"
)

// A halfCloser is a connection whose halves end one by one.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// clientTLS is the configuration of the active end; nil is plain.
func (w Workload) clientTLS() *tls.Config {
	if !w.TLS {
		return nil
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}
}

// serverTLS is the configuration of the passive end; nil is plain.
func (w Workload) serverTLS() (*tls.Config, error) {
	if !w.TLS {
		return nil, nil
	}
	p, err := tlsid.SelfSigned([]string{"localhost"}, time.Now().Add(time.Hour))
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{c}}, err
}

// dialled is what the active end of plain TCP writes to.
func (w Workload) dialled(ctx context.Context, nc *net.TCPConn) (halfCloser, error) {
	cfg := w.clientTLS()
	if cfg == nil {
		return nc, nil
	}
	c := tls.Client(nc, cfg)
	return c, c.HandshakeContext(ctx)
}

// accepted is what the passive end of plain TCP reads from.
func (w Workload) accepted(ctx context.Context, nc *net.TCPConn) (halfCloser, error) {
	cfg, err := w.serverTLS()
	if cfg == nil || err != nil {
		return nc, err
	}
	c := tls.Server(nc, cfg)
	return c, c.HandshakeContext(ctx)
}
