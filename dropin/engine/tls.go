package main

import (
	gocontext "context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/mpa"
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
	return openTLS(tlsid.Files{
		Cert: environment("WEFT_TLS_CERT"), Key: environment("WEFT_TLS_KEY"), CA: environment("WEFT_TLS_CA"), KeyLog: environment("WEFT_TLS_KEYLOG"),
	}, environment("WEFT_TLS_NAME"))
}

// openTLS returns the encryption by these files. Both ends present a certificate if there
// is an authority to verify them with.
func openTLS(files tlsid.Files, name string) (e encryption, err error) {
	e.name = name
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

// admit keeps the sockets of connections from children: with TLS, wrap does not get the
// socket.
func (e *encryption) admit() origin.Admit {
	if e.server == nil {
		return nil
	}
	return func(nc net.Conn) (*origin.Origin, error) {
		keepFrom(nc)
		return origin.Of(nc.RemoteAddr()), nil
	}
}

// connectOver connects a queue pair over nc, which this side has opened. It owns nc.
func connectOver(ctx gocontext.Context, qp *verbs.QP, nc net.Conn, p cm.Params) (*cm.Conn, error) {
	if p.TLS = options.tls.client(nc.RemoteAddr()); p.TLS == nil {
		nc = wrap(nc)
	} else {
		keepFrom(nc)
		p.Wrap = wrap
	}
	conn, err := cm.Connect(ctx, qp, nc, p)
	if err != nil {
		_ = nc.Close() // after a rejection it is still open
	}
	return conn, err
}

// isOfTLS reports whether there is no connection because of TLS: only one end uses it, or
// one does not accept the other's certificate.
func isOfTLS(err error) bool {
	return errors.As(err, new(*cm.TLSError)) || errors.Is(err, mpa.ErrTLS)
}

// sayIfTLS says on standard error that TLS is why there is no connection. The user has to
// know, who has asked for it at one end at least; the program learns only that it is
// rejected. A listener that closes, or a program that gives up, is no such case.
func sayIfTLS(err error) {
	if isOfTLS(err) && !errors.Is(err, gocontext.Canceled) {
		fmt.Fprintf(os.Stderr, "weft: no connection: %v\n", err)
	}
}

// A tlsLog is the log of listeners: it says by sayIfTLS what concerns TLS, and leaves the
// rest to the log that the user has asked for, if any. Listeners limit their lines.
type tlsLog struct{ slog.Handler }

func newTLSLog(asked *slog.Logger) *slog.Logger {
	if asked == nil {
		asked = slog.New(slog.DiscardHandler)
	}
	return slog.New(tlsLog{asked.Handler()})
}

// Enabled is for [slog.Handler].
func (tlsLog) Enabled(gocontext.Context, slog.Level) bool { return true }

// Handle is for [slog.Handler].
func (l tlsLog) Handle(ctx gocontext.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if err, ok := a.Value.Any().(error); ok {
			sayIfTLS(err)
		}
		return true
	})
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}
