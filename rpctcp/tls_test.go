// RPC with TLS: the certificates and peers of these tests, and calls over TLS.

package rpctcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// A realm is an authority with the certificates of a server and a client.
type realm struct {
	roots          *x509.CertPool
	server, client tls.Certificate
}

// realms are made once.
var realms = sync.OnceValues(func() (our, other *realm) { return newRealm(), newRealm() })

func newRealm() *realm {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	until := time.Now().AddDate(100, 0, 0) // of synctest's clock, too
	a, err := tlsid.NewAuthority("tests", until)
	must(err)
	issue := func(names ...string) tls.Certificate {
		p, err := a.Issue(names, until)
		must(err)
		c, err := tls.X509KeyPair(p.Cert, p.Key)
		must(err)
		return c
	}
	r := &realm{roots: x509.NewCertPool(), server: issue("server.test", "127.0.0.1", "::1"), client: issue("client.test")}
	r.roots.AppendCertsFromPEM(a.Cert)
	return r
}

func (r *realm) forServer(auth tls.ClientAuthType) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{r.server}, ClientAuth: auth, ClientCAs: r.roots, Time: validTime}
}

func (r *realm) forClient(certs ...tls.Certificate) *tls.Config {
	return &tls.Config{RootCAs: r.roots, ServerName: "server.test", Certificates: certs, Time: validTime}
}

// started is a time at which the certificates of realms are valid, whatever clock a test has.
var started = time.Now()

func validTime() time.Time { return started }

func ourRealm() *realm {
	r, _ := realms()
	return r
}

// securityOf answers every call with the security of its connection.
var securityOf = oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	e := r.Accept(8)
	e.String(r.Origin.Security().String(), 8)
	return e.Finish()
})

// xdr is the encoding of a short string.
func xdr(s string) string {
	e := oncrpc.NewEncoder(nil)
	e.String(s, 100)
	b, _ := e.Finish()
	return string(b)
}

// probeOf is a probe for TLS.
func probeOf(xid uint32) []byte {
	c := oncrpc.Call{XID: xid, Prog: 7, Vers: 1, Cred: oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorTLS}}
	b, err := c.Append(nil)
	if err != nil {
		panic(err)
	}
	return b
}

func xidOf(message []byte) uint32 {
	xid, _, _ := oncrpc.ParsePrefix(message)
	return xid
}

// agreed is the reply that agrees to TLS.
func agreed(xid uint32) []byte { return encoded(oncrpc.Reply{XID: xid, Verf: starttls}) }

var starttls = oncrpc.OpaqueAuth{Body: []byte("STARTTLS")}

func encoded(r oncrpc.Reply) []byte {
	b, err := r.Append(nil)
	if err != nil {
		panic(err)
	}
	return b
}

func denied(xid uint32, why oncrpc.AuthStat) []byte {
	return encoded(oncrpc.Reply{XID: xid, Stat: oncrpc.MsgDenied, Reject: oncrpc.AuthError, Auth: why})
}

// secure has a peer probe and begin TLS, as a client.
func (p *peer) secure(cfg *tls.Config) (*tls.Conn, error) {
	p.t.Helper()
	p.send(probeOf(99))
	p.expect(agreed(99))
	conn := tls.Client(p.Conn, cfg)
	if err := conn.Handshake(); err != nil {
		return nil, err
	}
	p.in, p.out = oncrpc.NewRecordReader(conn, oncrpc.RecordLimits{}), oncrpc.NewRecordWriter(conn, 0)
	return conn, nil
}

// A tap keeps what a connection has written.
type tap struct {
	net.Conn
	mu   sync.Mutex
	sent bytes.Buffer
}

func (c *tap) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.sent.Write(b)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *tap) wrote(s string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return bytes.Contains(c.sent.Bytes(), []byte(s))
}

// TestCallsGoOverTLS makes calls, short and long, of which nothing is seen on the wire.
//
// Claims: T-5.1.1-4
func TestCallsGoOverTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	for _, network := range nettest.Networks() {
		s := newServer(t, ServerConfig{Handler: echo, TLS: r.forServer(tls.NoClientCert)})
		ln := nettest.Listen(t, network)
		done := make(chan error, 1)
		go func() { done <- s.Serve(context.Background(), ln) }()
		var taps []*tap
		cfg := r.forClient()
		cfg.ServerName = "" // that of the address
		c := newClient(t, ClientConfig{Address: ln.Addr().String(), TLS: cfg, Wrap: func(nc net.Conn) net.Conn {
			taps = append(taps, &tap{Conn: nc})
			return taps[len(taps)-1]
		}})
		for _, size := range []int{0, 4, 4096, 64 << 10, 1 << 20, 2<<20 - 1024} {
			args := bytes.Repeat([]byte("secret! "), size/8)
			r, err := c.Call(context.Background(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 7}, Args: [][]byte{args[:size/8], args[size/8:]}})
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(r.Results, args) {
				t.Errorf("%d octets came back changed", size)
			}
			r.Release()
		}
		c.Close()
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if err := nettest.Await(t, done); !errors.Is(err, ErrServerClosed) {
			t.Errorf("Serve returned %v, want %v", err, ErrServerClosed)
		}
		if len(taps) != 1 || taps[0].wrote("secret!") {
			t.Errorf("%d connections, or arguments in the clear", len(taps))
		}
	}
}

// TestHandlersKnowHowACallerIsSecured connects with and without certificates, verified or not, to servers that
// ask for them or not, and in the clear to the same ones.
//
// Claims: T-4.1-1 T-5-3
func TestHandlersKnowHowACallerIsSecured(t *testing.T) {
	nettest.CheckLeaks(t)
	r, other := realms()
	for _, tt := range []struct {
		what   string
		server tls.ClientAuthType
		client *tls.Config
		want   string
	}{
		{"in the clear", tls.NoClientCert, nil, "none"},
		{"without a certificate", tls.NoClientCert, r.forClient(), "tls"},
		{"with one that nobody verifies", tls.NoClientCert, r.forClient(r.client), "tls"},
		{"with one of anybody", tls.RequireAnyClientCert, &tls.Config{RootCAs: r.roots, ServerName: "server.test", Time: validTime, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &other.client, nil }}, "tls"},
		{"with none, though it may", tls.VerifyClientCertIfGiven, r.forClient(), "tls"},
		{"with a certificate, as it may", tls.VerifyClientCertIfGiven, r.forClient(r.client), "mtls"},
		{"with a certificate, as it must", tls.RequireAndVerifyClientCert, r.forClient(r.client), "mtls"},
	} {
		var from *origin.Origin
		s := newServer(t, ServerConfig{TLS: r.forServer(tt.server), Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			from = r.Origin
			return securityOf(ctx, r)
		})})
		c := newClient(t, ClientConfig{TLS: tt.client, Dial: serving(s)})
		nettest.Await(t, call(context.Background(), c, "")).want(t, xdr(tt.want), nil)
		c.Close()
		s.Close()
		if tt.want == "mtls" && (from.TLS == nil || from.TLS.PeerCertificates[0].DNSNames[0] != "client.test") {
			t.Errorf("%s: the handler does not see the certificate: %+v", tt.what, from)
		}
	}
}

// serving returns a Dial that connects to a server.
func serving(s *Server) func(context.Context) (net.Conn, error) {
	return func(context.Context) (net.Conn, error) {
		ours, theirs := iwarptest.Pipe()
		go s.ServeConn(context.Background(), theirs)
		return ours, nil
	}
}

// TestAClientInsistsOnTLS answers the probe in every way.
//
// Claims: T-4.1-2 T-4.1-3 T-4.1-4 T-4.1-6 T-4.1-7 T-4.1-8
func TestAClientInsistsOnTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	none := oncrpc.OpaqueAuth{}
	for _, tt := range []struct {
		what  string
		reply oncrpc.Reply
		hello bool
	}{
		{"agrees", oncrpc.Reply{Verf: starttls}, true},
		{"agrees, without the program", oncrpc.Reply{Verf: starttls, Accept: oncrpc.ProgUnavail}, true},
		{"agrees, with another version", oncrpc.Reply{Verf: starttls, Accept: oncrpc.ProgMismatch}, true},
		{"knows of no TLS", oncrpc.Reply{Verf: none}, false},
		{"has half of the token", oncrpc.Reply{Verf: oncrpc.OpaqueAuth{Body: []byte("STAR")}}, false},
		{"has more than the token", oncrpc.Reply{Verf: oncrpc.OpaqueAuth{Body: []byte("STARTTLS!")}}, false},
		{"has a verifier of another flavor", oncrpc.Reply{Verf: oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorTLS, Body: []byte("STARTTLS")}}, false},
		{"denies it", oncrpc.Reply{Stat: oncrpc.MsgDenied, Reject: oncrpc.AuthError, Auth: oncrpc.AuthBadCred}, false},
		{"speaks another RPC", oncrpc.Reply{Stat: oncrpc.MsgDenied, Reject: oncrpc.RPCMismatch, Low: 3, High: 3}, false},
	} {
		for _, optional := range []bool{false, true} {
			d := newDialer(t)
			c := newClient(t, ClientConfig{Dial: d.dial, TLS: ourRealm().forClient(), TLSOptional: optional, Attempts: 1, Prog: 7, Vers: 1})
			answer := call(context.Background(), c, "secret!!")
			p := <-d.peers
			got := p.receive()
			tt.reply.XID = xidOf(got)
			if want := probeOf(tt.reply.XID); !bytes.Equal(got, want) {
				t.Errorf("the client sent % x, want the probe % x", got, want)
			}
			p.send(encoded(tt.reply))
			switch {
			case tt.hello:
				var first [1]byte
				if _, err := io.ReadFull(p, first[:]); err != nil || first[0] != handshakeTLS {
					t.Errorf("a server that %s gets %x, %v, want a ClientHello", tt.what, first, err)
				}
				p.Close()
				if r := nettest.Await(t, answer); r.err == nil {
					t.Errorf("the call was executed")
				}
			case optional:
				xid := p.xid()
				p.send(replyOf(xid, "results."))
				nettest.Await(t, answer).want(t, "results.", nil)
			default:
				if rest, _ := io.ReadAll(p); len(rest) > 0 {
					t.Errorf("a server that %s gets % x", tt.what, rest)
				}
				r := nettest.Await(t, answer)
				r.want(t, "", ErrNoTLS)
				r.want(t, "", &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthFailed})
			}
			c.Close()
			p.Close()
		}
	}
}

// TestCallsInTheReverseDirectionUseTLS has a handler call back.
//
// Claims: T-5.1.1-5
func TestCallsInTheReverseDirectionUseTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	s := newServer(t, ServerConfig{TLS: r.forServer(tls.NoClientCert), Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		reply, err := r.Back.Call(ctx, &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 8}})
		if err != nil {
			return nil, err
		}
		defer reply.Release()
		e := r.Accept(len(reply.Results))
		e.Fixed(reply.Results)
		return e.Finish()
	})})
	c := newClient(t, ClientConfig{TLS: r.forClient(), Reverse: securityOf, Dial: serving(s)})
	// The client has verified the server's certificate.
	nettest.Await(t, call(context.Background(), c, "")).want(t, xdr("mtls"), nil)
}

// TestTheSecurityOfConnectionsIsLogged connects with TLS, and without where that is allowed.
//
// Claims: T-6.1-1
func TestTheSecurityOfConnectionsIsLogged(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	for _, encrypted := range []bool{true, false} {
		atServer, atClient := make(lines, 100), make(lines, 100)
		cfg := ServerConfig{Handler: echo, Logger: slog.New(slog.NewTextHandler(atServer, nil))}
		if encrypted {
			cfg.TLS = r.forServer(tls.VerifyClientCertIfGiven)
		}
		s := newServer(t, cfg)
		c := newClient(t, ClientConfig{TLS: r.forClient(r.client), TLSOptional: true, Dial: serving(s), Logger: slog.New(slog.NewTextHandler(atClient, nil))})
		nettest.Await(t, call(context.Background(), c, "args")).want(t, "args", nil)
		want := "connection not encrypted"
		if encrypted {
			want = "connection secured"
			if got := atServer.first(); !strings.Contains(got, "security=mtls") {
				t.Errorf("the server logs %q", got)
			}
		}
		if got := atClient.first(); !strings.Contains(got, want) {
			t.Errorf("the client logs %q, want %q", got, want)
		}
		c.Close()
		s.Close()
	}
}

// first returns the first line that was logged, if there is one already.
func (l lines) first() string {
	select {
	case line := <-l:
		return line
	default:
		return ""
	}
}
