// The handshake: what is negotiated, who is refused, and how long it may take.

package rpctcp

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

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
			tickets := make(sessions, 10)
			cfg.ClientSessionCache = tickets
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
				if len(tickets) > 0 {
					t.Errorf("%s: the server sends tickets", tt.what)
				}
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

// sessions are those that a client could resume.
type sessions chan string

func (s sessions) Get(string) (*tls.ClientSessionState, bool)   { return nil, false }
func (s sessions) Put(server string, _ *tls.ClientSessionState) { s <- server }

// TestAClientWantsItsServerToChooseTheProtocol looks at the protocols that a client offers, and chooses none.
//
// Claims: T-5-5 T-5-7
func TestAClientWantsItsServerToChooseTheProtocol(t *testing.T) {
	nettest.CheckLeaks(t)
	r := ourRealm()
	for _, lenient := range []bool{false, true} {
		d := newDialer(t)
		tickets := make(sessions, 10)
		ours := r.forClient()
		ours.ClientSessionCache = tickets // is left out
		c := newClient(t, ClientConfig{Dial: d.dial, TLS: ours, AnyALPN: lenient, Attempts: 1})
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
			if len(tickets) > 0 {
				t.Error("the client would resume the session")
			}
		}
		c.Close()
		p.Close()
	}
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
