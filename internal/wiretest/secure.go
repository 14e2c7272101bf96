// This file is the TLS of wires that have it.

package wiretest

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/tlsid"
)

// identity is the certificate of both sides, which trust each other by it.
var identity = sync.OnceValues(func() (tls.Certificate, *x509.CertPool) {
	until := time.Now().Add(24 * time.Hour)
	a, err := tlsid.NewAuthority("tests", until)
	if err != nil {
		panic(err)
	}
	p, err := a.Issue([]string{"peer.test"}, until)
	if err != nil {
		panic(err)
	}
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Cert)
	return cert, roots
})

// serverTLS returns the configuration of a server of the wire, or nil.
func (w Wire) serverTLS() *tls.Config {
	if !w.TLS {
		return nil
	}
	cert, roots := identity()
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots, NextProtos: []string{"iwarp"}}
}

// clientTLS returns the configuration of a client of the wire, or nil.
func (w Wire) clientTLS() *tls.Config {
	if !w.TLS {
		return nil
	}
	cert, roots := identity()
	return &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: roots, ServerName: "peer.test", NextProtos: []string{"iwarp"}}
}

// server and client return a Peer's end of a connection.
func (w Wire) server(nc net.Conn) net.Conn {
	if w.TLS {
		return &secured{Conn: tls.Server(nc, w.serverTLS()), below: nc}
	}
	return nc
}

func (w Wire) client(nc net.Conn) net.Conn {
	if w.TLS {
		return &secured{Conn: tls.Client(nc, w.clientTLS()), below: nc}
	}
	return nc
}

// A secured is a TLS connection that can be reset, and that ends as TCP does.
type secured struct {
	*tls.Conn
	below net.Conn
	reset bool
}

// SetLinger makes Close a reset.
func (s *secured) SetLinger(seconds int) error {
	s.reset = seconds == 0
	return s.below.(interface{ SetLinger(int) error }).SetLinger(seconds)
}

// CloseWrite sends close_notify and FIN.
func (s *secured) CloseWrite() error {
	if err := s.Conn.CloseWrite(); err != nil {
		return err
	}
	return s.below.(interface{ CloseWrite() error }).CloseWrite()
}

func (s *secured) Close() error {
	if s.reset {
		return s.below.Close()
	}
	return s.Conn.Close()
}
