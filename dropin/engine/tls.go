package main

import (
	gocontext "context"
	"crypto/tls"
	"net"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// This file encrypts connections (docs/tls.md), if the user asks for that with
// `weft run --tls`.

// An encryption is what the user asks for; the zero value is no TLS.
type encryption struct {
	identity *tlsid.Identity // of connections that this side opens; nil is plain
	name     string          // that certificates of peers are for; empty is their address
	server   *tls.Config     // of connections that others open; nil is plain
}

// readTLS returns the encryption that the environment asks for.
func readTLS() (e encryption, err error) {
	if on := environment("WEFT_TLS"); on == "" || on == "0" {
		return e, nil
	}
	files := tlsid.Files{
		Cert: environment("WEFT_TLS_CERT"), Key: environment("WEFT_TLS_KEY"), CA: environment("WEFT_TLS_CA"), KeyLog: environment("WEFT_TLS_KEYLOG"),
	}
	e.name = environment("WEFT_TLS_NAME")
	if e.identity, err = tlsid.Open(files); err != nil {
		return e, err
	}
	auth := tls.NoClientCert
	if files.CA != "" {
		auth = tls.RequireAndVerifyClientCert
	}
	e.server, err = e.identity.Server(auth)
	return e, err
}

// client returns the configuration for a peer; nil is plain.
func (e *encryption) client(peer net.Addr) *tls.Config {
	if e.identity == nil {
		return nil
	}
	if e.name != "" {
		return e.identity.Client(e.name)
	}
	host, _, _ := net.SplitHostPort(peer.String())
	return e.identity.Client(host)
}

// admit is for listeners whose connections wrap does not get as they are.
func (e *encryption) admit() origin.Admit {
	if e.server == nil {
		return nil
	}
	return func(nc net.Conn) (*origin.Origin, error) {
		keepFrom(nc)
		return origin.Of(nc.RemoteAddr()), nil
	}
}

// connectOver connects a queue pair over nc, which this side has opened.
func connectOver(ctx gocontext.Context, qp *verbs.QP, nc net.Conn, p cm.Params) (*cm.Conn, error) {
	if p.TLS = options.tls.client(nc.RemoteAddr()); p.TLS == nil {
		return cm.Connect(ctx, qp, wrap(nc), p)
	}
	keepFrom(nc)
	p.Wrap = wrap
	return cm.Connect(ctx, qp, nc, p)
}
