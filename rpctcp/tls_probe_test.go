// The probe for TLS, and what may come in the clear around it.

package rpctcp

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/oncrpc"
)

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
