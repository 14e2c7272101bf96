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
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// TestWhoFailsToProveItselfGetsNoCalls has either side present a certificate that the other must refuse.
//
// Claims: T-4.1-9 T-4.2-1 T-4.2-3 T-5.2.1-1 T-5.2.1-2
func TestWhoFailsToProveItselfGetsNoCalls(t *testing.T) {
	nettest.CheckLeaks(t)
	r, other := realms()
	wrong := r.forClient()
	wrong.ServerName = "other.test"
	insists := other.forClient(other.client)
	insists.RootCAs = r.roots
	insists.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &other.client, nil }
	old := r.forServer(tls.NoClientCert)
	for _, tt := range []struct {
		what           string
		server, client *tls.Config
	}{
		{"the server has another name", r.forServer(tls.NoClientCert), wrong},
		{"the server has another authority", other.forServer(tls.NoClientCert), r.forClient()},
		{"the client has no certificate", r.forServer(tls.RequireAndVerifyClientCert), r.forClient()},
		{"the client has one of another authority", r.forServer(tls.VerifyClientCertIfGiven), insists},
	} {
		var executed atomic.Int32
		s := newServer(t, ServerConfig{TLS: tt.server, Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			executed.Add(1)
			return echo(ctx, r)
		})})
		c := newClient(t, ClientConfig{TLS: tt.client, Dial: serving(s)})
		result := nettest.Await(t, call(context.Background(), c, "args"))
		if !errors.Is(result.err, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthFailed}) && !rejectedTLS(result.err) {
			t.Errorf("%s: the call returned %v, want AUTH_FAILED", tt.what, result.err)
		}
		c.Close()
		s.Close()
		if executed.Load() > 0 {
			t.Errorf("%s: the call was executed", tt.what)
		}
	}
	if _, err := NewServer(ServerConfig{Handler: echo, TLS: &tls.Config{}}); err == nil {
		t.Error("a server with TLS may have no certificate")
	}
	old.MaxVersion = tls.VersionTLS12
	if _, err := NewServer(ServerConfig{Handler: echo, TLS: old}); err == nil {
		t.Error("a server may have TLS 1.2")
	}
	if _, err := NewClient(ClientConfig{Address: "h:1", TLS: &tls.Config{MaxVersion: tls.VersionTLS12}}); err == nil {
		t.Error("a client may have TLS 1.2")
	}
	if _, err := NewClient(ClientConfig{Dial: newDialer(t).dial, TLS: &tls.Config{}}); err == nil {
		t.Error("a client need not know the name of its server")
	}
}

// rejectedTLS reports whether a call was refused because of TLS, with the cause.
func rejectedTLS(err error) bool {
	var reject *oncrpc.RejectError
	return errors.As(err, &reject) && reject.Stat == oncrpc.AuthError && reject.Auth == oncrpc.AuthFailed && reject.Err != nil
}

// TestAServerNegotiatesWhatRPCWithTLSNeeds offers versions and protocols to a server, which asks for a certificate.
//
// Claims: T-4.2-2 T-5-1 T-5-6
func TestAServerNegotiatesWhatRPCWithTLSNeeds(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	// A configuration for each client is not taken for granted either.
	loose := r.forServer(tls.NoClientCert)
	loose.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		c := r.forServer(tls.NoClientCert)
		c.MinVersion = tls.VersionTLS12
		return c, nil
	}
	for _, tt := range []struct {
		what    string
		version uint16
		alpn    []string
		fails   bool
	}{
		{"as RFC 9289 says", 0, []string{"sunrpc"}, false},
		{"among others", 0, []string{"h2", "sunrpc"}, false},
		{"no protocol, as Linux's tlshd", 0, nil, false},
		{"another protocol", 0, []string{"h2"}, true},
		{"TLS 1.2", tls.VersionTLS12, []string{"sunrpc"}, true},
	} {
		for _, server := range []*tls.Config{r.forServer(tls.NoClientCert), loose} {
			s := newServer(t, ServerConfig{Handler: securityOf, TLS: server})
			p, done := serveOne(t, s)
			cfg := r.forClient()
			cfg.MaxVersion, cfg.NextProtos = tt.version, tt.alpn
			cfg.ClientSessionCache = tls.NewLRUClientSessionCache(1)
			asked := false
			cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				asked = true
				return new(tls.Certificate), nil
			}
			conn, err := p.secure(cfg)
			if tt.fails != (err != nil) {
				t.Errorf("%s: %v", tt.what, err)
			}
			if err == nil {
				p.send(callOf(1, ""))
				p.expect(replyOf(1, xdr("tls")))
				if !asked {
					t.Errorf("%s: the server does not ask for a certificate", tt.what)
				}
				state := conn.ConnectionState()
				if len(tt.alpn) > 0 && state.NegotiatedProtocol != "sunrpc" {
					t.Errorf("%s: the protocol is %q", tt.what, state.NegotiatedProtocol)
				}
				conn.Close()
			}
			p.Close()
			nettest.Await(t, done)
		}
	}
}

// TestAClientWantsItsServerToChooseTheProtocol looks at the protocols that a client offers, and chooses none.
//
// Claims: T-5-5 T-5-7
func TestAClientWantsItsServerToChooseTheProtocol(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	for _, lenient := range []bool{false, true} {
		d := newDialer(t)
		c := newClient(t, ClientConfig{Dial: d.dial, TLS: r.forClient(), AnyALPN: lenient, Attempts: 1})
		answer := call(context.Background(), c, "args")
		p := <-d.peers
		p.send(agreed(p.xid()))
		var offered []string
		cfg := r.forServer(tls.NoClientCert)
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			offered = hello.SupportedProtos
			return nil, nil
		}
		conn := tls.Server(p.Conn, cfg)
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		if len(offered) != 1 || offered[0] != "sunrpc" {
			t.Errorf("the client offers the protocols %q", offered)
		}
		p.in, p.out = oncrpc.NewRecordReader(conn, oncrpc.RecordLimits{}), oncrpc.NewRecordWriter(conn, 0)
		got := p.receive()
		if !lenient {
			if got != nil {
				t.Errorf("the client sent % x", got)
			}
			p.Close()
			nettest.Await(t, answer).want(t, "", ErrALPN)
		} else {
			p.send(replyOf(xidOf(got), "results."))
			nettest.Await(t, answer).want(t, "results.", nil)
		}
		c.Close()
		p.Close()
	}
}

// TestAUTHTLSThatCannotBeginTLSIsABadCredential sends AUTH_TLS where it is out of place, over TCP and UDP.
//
// Claims: T-4.1-3 T-4.1-4 T-4.1-5 T-4.1-10 T-4.1-11
func TestAUTHTLSThatCannotBeginTLSIsABadCredential(t *testing.T) {
	nettest.CheckLeaks(t)
	message := func(c oncrpc.Call, args string) []byte {
		c.Prog, c.Vers, c.Cred.Flavor = 7, 1, oncrpc.FlavorTLS
		b, err := c.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		return append(b, args...)
	}
	with := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert)})
	without := newServer(t, ServerConfig{Handler: echo})
	for _, s := range []*Server{with, without} {
		p, _ := serveOne(t, s)
		p.send(message(oncrpc.Call{XID: 1, Proc: 1}, "args"))
		p.expect(denied(1, oncrpc.AuthBadCred))
		p.send(message(oncrpc.Call{XID: 2, Cred: oncrpc.OpaqueAuth{Body: []byte("body")}}, ""))
		p.expect(denied(2, oncrpc.AuthBadCred))
		if s == without {
			p.send(probeOf(3))
			p.expect(denied(3, oncrpc.AuthBadCred))
			p.send(callOf(4, "args"))
			p.expect(replyOf(4, "args"))
			continue
		}
		p.send(message(oncrpc.Call{XID: 3, Verf: oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys}}, ""))
		p.expect(denied(3, oncrpc.AuthBadVerf))
		p.send(message(oncrpc.Call{XID: 4, Verf: starttls}, ""))
		p.expect(denied(4, oncrpc.AuthBadVerf))
		p.send(message(oncrpc.Call{XID: 5}, "args"))
		p.expect(encoded(oncrpc.Reply{XID: 5, Accept: oncrpc.GarbageArgs}))
		p.send(callOf(6, "args"))
		p.expect(replyOf(6, "args"))
		if _, err := p.secure(ourRealm().forClient()); err != nil {
			t.Fatal(err)
		}
		p.send(probeOf(7)) // within TLS
		p.expect(denied(7, oncrpc.AuthBadCred))
		p.send(callOf(8, "args"))
		p.expect(replyOf(8, "args"))
	}
	nc, _ := packets(t, with)
	if got, want := ask(t, nc, probeOf(9)), denied(9, oncrpc.AuthBadCred); !bytes.Equal(got, want) {
		t.Errorf("the answer to a datagram is % x, want % x", got, want)
	}
}

// TestNothingThatCameInTheClearIsTakenBehindTheProbe sends octets with the probe and after the reply.
//
// Claims: T-5.1.1-2 T-5.1.1-3
func TestNothingThatCameInTheClearIsTakenBehindTheProbe(t *testing.T) {
	nettest.CheckLeaks(t)
	hello := string([]byte{handshakeTLS, 3, 1, 0, 4, 1, 0, 0, 0})
	for name, tt := range map[string]struct {
		with, after string // sent with the probe, and after the reply
		want        error
	}{
		"a call with the probe":         {string(record(callOf(2, "args"))), "", errEarly},
		"one octet with the probe":      {"\x00", "", errEarly},
		"a ClientHello with the probe":  {hello, "", errEarly},
		"a call after the reply":        {"", string(record(callOf(2, "args"))), errNotTLS},
		"another probe after the reply": {"", string(record(probeOf(2))), errNotTLS},
		"an old ClientHello":            {"", "\x80\x2e\x01\x00\x02", errNotTLS},
		"application data":              {"", "\x17\x03\x03\x00\x01\x00", errNotTLS},
		"an alert":                      {"", "\x15\x03\x03\x00\x02\x01\x00", errNotTLS},
		"text":                          {"", "GET / HTTP/1.1\r\n\r\n", errNotTLS},
	} {
		t.Run(name, func(t *testing.T) {
			var executed atomic.Int32
			s := newServer(t, ServerConfig{TLS: ourRealm().forServer(tls.NoClientCert), Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
				executed.Add(1)
				return echo(ctx, r)
			})})
			p, done := serveOne(t, s)
			_, _ = io.WriteString(p, string(record(probeOf(1)))+tt.with)
			if tt.with == "" {
				p.expect(agreed(1))
				_, _ = io.WriteString(p, tt.after)
			}
			if got, _ := io.ReadAll(p); len(got) > 0 {
				t.Errorf("the server answered % x", got)
			}
			if err := nettest.Await(t, done); !errors.Is(err, tt.want) {
				t.Errorf("the connection ended with %v, want %v", err, tt.want)
			}
			if executed.Load() > 0 {
				t.Error("a call was executed")
			}
			p.Close()
		})
	}
}

// TestAClientTakesNothingInTheClearBehindTheReply sends a reply in the clear right behind the one to the probe.
//
// Claims: T-5.1.1-2
func TestAClientTakesNothingInTheClearBehindTheReply(t *testing.T) {
	nettest.CheckLeaks(t)
	d := newDialer(t)
	c := newClient(t, ClientConfig{Dial: d.dial, TLS: ourRealm().forClient(), Attempts: 1})
	c.nextXID = 5
	answer := call(context.Background(), c, "args")
	p := <-d.peers
	_, _ = p.Write(append(record(agreed(p.xid())), record(replyOf(5, "injected"))...))
	nettest.Await(t, answer).want(t, "", errNotTLS)
	p.Close()
}

// TestRepliesToEarlierCallsGoInTheClear has a call executed while the probe arrives.
//
// Claims: T-5.1.1-1
func TestRepliesToEarlierCallsGoInTheClear(t *testing.T) {
	nettest.CheckLeaks(t)
	release := make(chan struct{})
	s := newServer(t, ServerConfig{TLS: ourRealm().forServer(tls.NoClientCert), Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if string(r.Args) == "wait" {
			<-release
		}
		return securityOf(ctx, r)
	})})
	p, _ := serveOne(t, s)
	p.send(callOf(1, "wait"))
	p.send(probeOf(2))
	close(release)
	p.expect(replyOf(1, xdr("none")))
	p.expect(agreed(2))
	conn := tls.Client(p.Conn, ourRealm().forClient())
	if err := conn.Handshake(); err != nil {
		t.Fatal(err)
	}
	p.in, p.out = oncrpc.NewRecordReader(conn, oncrpc.RecordLimits{}), oncrpc.NewRecordWriter(conn, 0)
	p.send(callOf(3, ""))
	p.expect(replyOf(3, xdr("tls")))
	p.Close()
}

func TestAHandshakeThatDoesNotEndIsCutOff(t *testing.T) {
	for _, stall := range []time.Duration{0, 5 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert), Stall: stall})
			p, done := serveOne(t, s)
			p.send(probeOf(1))
			p.expect(agreed(1))
			_, _ = p.Write([]byte{handshakeTLS, 3, 1})
			synctest.Wait()
			if n := s.setting.in.Used(); n < handshakeMemory {
				t.Errorf("a handshake counts as %d octets, want %d", n, handshakeMemory)
			}
			began := time.Now()
			err := <-done
			want := handshakeTime
			if stall > 0 {
				want = stall
			}
			if took := time.Since(began); took != want || err == nil {
				t.Errorf("it ended after %v with %v, want %v and an error", took, err, want)
			}
			p.Close()
		})
	}
}

func TestHandshakesThatStallMakeRoomForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Half of the memory is for calls: a handshake of one share and two of another fit.
		s := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert), Memory: 2 * 5 * handshakeMemory / 2})
		var hostile []*peer
		for range 4 {
			p, _ := serveFrom(t, s, "192.0.2.1")
			hostile = append(hostile, p)
			p.send(probeOf(1))
		}
		synctest.Wait()
		p, _ := serveFrom(t, s, "192.0.2.2")
		began := time.Now()
		if _, err := p.secure(ourRealm().forClient()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("another host waited for %v", took)
		}
		if n, limit := s.setting.in.Used(), s.setting.in.Limit(); n > limit {
			t.Errorf("%d octets are used of %d", n, limit)
		}
		for _, p := range append(hostile, p) {
			p.Close()
		}
	})
}

func TestAHandshakeCutAtAnyOctetLeavesNothing(t *testing.T) {
	nettest.CheckLeaks(t)
	s := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert)})
	whole := uint64(1 << 20)
	for n := uint64(len(record(probeOf(1)))); n < whole; n += 7 {
		p, done := serveOne(t, s)
		p.send(probeOf(99))
		p.expect(agreed(99))
		p.FinAfter(n)
		conn := tls.Client(p.Conn, ourRealm().forClient())
		if conn.Handshake() == nil {
			_ = conn.CloseWrite()
		}
		if n > p.Written() {
			whole = 0 // all of it was sent
		}
		p.drain()
		p.Close()
		nettest.Await(t, done)
	}
}

// TestTheEndOfTLSIsAnnounced ends connections from either side.
//
// Claims: T-5.1.1-6
func TestTheEndOfTLSIsAnnounced(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	s := newServer(t, ServerConfig{Handler: echo, TLS: r.forServer(tls.NoClientCert)})
	p, done := serveOne(t, s)
	if _, err := p.secure(r.forClient()); err != nil {
		t.Fatal(err)
	}
	p.send(callOf(1, "args"))
	p.expect(replyOf(1, "args")) // so the server's handshake is over, too
	go s.Shutdown(context.Background())
	// crypto/tls takes an end without an alert for an alert, so look at the record: two
	// octets of it, one of its type, and a tag of 16.
	if rest, err := io.ReadAll(p.Conn); len(rest) != 5+2+1+16 || err != nil {
		t.Errorf("TLS ended with % x, %v, want an alert of its end", rest, err)
	}
	if err := nettest.Await(t, done); err != nil {
		t.Errorf("the server's end is %v", err)
	}
	p.Close()

	s = newServer(t, ServerConfig{Handler: echo, TLS: r.forServer(tls.NoClientCert)})
	ours, theirs := iwarptest.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(context.Background(), theirs) }()
	c := newClient(t, ClientConfig{TLS: r.forClient(), Dial: func(context.Context) (net.Conn, error) { return ours, nil }})
	nettest.Await(t, call(context.Background(), c, "args")).want(t, "args", nil)
	c.Close()
	if err := nettest.Await(t, ended); err != nil {
		t.Errorf("the server sees the client's end as %v", err)
	}
}

func TestClosingDoesNotWaitForWhoDoesNotTakeTheAlert(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert)})
		ours, theirs := iwarptest.BufferedPipe(16 << 10)
		done := make(chan error, 1)
		go func() { done <- s.ServeConn(context.Background(), theirs) }()
		p := newPeer(t, ours)
		if _, err := p.secure(ourRealm().forClient()); err != nil {
			t.Fatal(err)
		}
		p.send(callOf(1, string(make([]byte, 15<<10)))) // its reply fills the pipe
		synctest.Wait()
		began := time.Now()
		s.Close()
		<-done
		if took := time.Since(began); took > grace {
			t.Errorf("the server took %v to close", took)
		}
		p.Close()
	})
}

func TestAClientReconnectsWithTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	var ends []*iwarptest.Conn
	s := newServer(t, ServerConfig{Handler: securityOf, TLS: r.forServer(tls.NoClientCert)})
	c := newClient(t, ClientConfig{TLS: r.forClient(), Backoff: 1, Dial: func(context.Context) (net.Conn, error) {
		ours, theirs := iwarptest.Pipe()
		if len(ends) == 1 {
			theirs.ResetAfter(200) // in the handshake
		}
		ends = append(ends, ours)
		go s.ServeConn(context.Background(), theirs)
		return ours, nil
	}})
	nettest.Await(t, call(context.Background(), c, "")).want(t, xdr("tls"), nil)
	ends[0].Reset()
	nettest.Await(t, call(context.Background(), c, "")).want(t, xdr("tls"), nil)
	c.Close()
	if len(ends) < 2 {
		t.Errorf("there were %d connections", len(ends))
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

func TestAConnectionEndsBeforeItsKeysAreWorn(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	for _, worn := range []string{"server", "client"} {
		var executed, connections atomic.Int32
		s := newServer(t, ServerConfig{TLS: r.forServer(tls.NoClientCert), Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
			executed.Add(1)
			return echo(ctx, r)
		})})
		dial := serving(s)
		c := newClient(t, ClientConfig{TLS: r.forClient(), Backoff: 1, Dial: func(ctx context.Context) (net.Conn, error) {
			connections.Add(1)
			return dial(ctx)
		}})
		if worn == "server" {
			s.setting.mostRecords = 8
		} else {
			c.setting.mostRecords = 8
		}
		for range 30 {
			nettest.Await(t, call(context.Background(), c, "args")).want(t, "args", nil)
		}
		if n := connections.Load(); n < 4 || n > 12 {
			t.Errorf("the %s's keys are worn: 30 calls took %d connections", worn, n)
		}
		if n := executed.Load(); worn == "client" && n != 30 {
			t.Errorf("the %s's keys are worn: 30 calls were executed %d times", worn, n)
		}
		c.Close()
		s.Close()
	}
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

// FuzzProbe has a server with TLS take any octets off a connection: it answers calls in
// the clear until it has agreed to TLS, and from then on sends TLS only.
func FuzzProbe(f *testing.F) {
	f.Add(record(probeOf(1)), []byte{handshakeTLS, 3, 1, 0, 4, 1, 0, 0, 0}, uint8(0))
	f.Add(append(record(callOf(1, "args")), record(probeOf(2))...), record(callOf(3, "")), uint8(1))
	f.Add(record(probeOf(1)), []byte{21, 3, 3, 0, 2, 1, 0}, uint8(3))
	f.Fuzz(func(t *testing.T, sent, then []byte, size uint8) {
		synctest.Test(t, func(t *testing.T) {
			s := newServer(t, ServerConfig{Handler: echo, TLS: ourRealm().forServer(tls.NoClientCert), Record: oncrpc.RecordLimits{Record: 1 << 16, Fragments: 8}})
			p, done := serveOne(t, s)
			if size > 0 {
				p.Conn.ReadSizes(func() int { return int(size) })
			}
			go func() {
				_, _ = p.Write(sent)
				synctest.Wait()
				_, _ = p.Write(then)
				_ = p.CloseWrite()
			}()
			for message := p.receive(); message != nil; message = p.receive() {
				var r oncrpc.Reply
				if _, err := r.Parse(message); err != nil {
					t.Errorf("the server sent % x", message)
				}
				if string(r.Verf.Body) == startTLS {
					break
				}
			}
			if rest, _ := io.ReadAll(p); len(rest) > 0 && (rest[0] < 20 || rest[0] > 23) {
				t.Errorf("the server sent % x after it had agreed to TLS", rest)
			}
			p.Close()
			<-done
			s.Close()
		})
	})
}
