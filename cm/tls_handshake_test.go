// Handshakes that fail: who is told why, how long they may take, and how many there may be.

package cm_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// A logbook has what a listener logs, and tells when something was written.
type logbook struct {
	mu    sync.Mutex
	text  bytes.Buffer
	wrote chan struct{}
}

func newLog() *logbook { return &logbook{wrote: make(chan struct{}, 100)} }

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrote <- struct{}{}
	return l.text.Write(p)
}

func (l *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// next waits for a line.
func (l *logbook) next(t *testing.T) string {
	t.Helper()
	nettest.Await(t, l.wrote)
	l.mu.Lock()
	defer l.mu.Unlock()
	line, _ := l.text.ReadString('\n')
	return line
}

func TestPeersThatDoNotFitAreToldWhy(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	stranger, _ := pins(t)
	stranger.open(t, server.cert.Cert)
	bare := &tls.Config{InsecureSkipVerify: true}
	for _, tt := range []struct {
		what           string
		client, server *tls.Config
		dial, listener string // parts of the errors
	}{
		{"plain client", nil, server.mutual(t), mpa.ErrTLS.Error(), cm.ErrPlain.Error()},
		{"plain server", client.Client("127.0.0.1"), nil, "the peer closed the connection instead of an answer, as one does that uses MPA without TLS", mpa.ErrTLS.Error()},
		{"another name", client.Client("other.example"), server.mutual(t), "not other.example", "bad certificate"},
		{"no certificate", bare, server.mutual(t), "the peer refuses: tls: certificate required", "client didn't provide a certificate"},
		{"a stranger's", stranger.Client("127.0.0.1"), server.mutual(t), "the peer refuses: tls: unknown certificate authority", "unknown authority"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			a, b, l := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{}), newLog()
			ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: tt.server, Logger: l.logger()})
			_, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{TLS: tt.client})
			if err == nil || !strings.Contains(err.Error(), tt.dial) {
				t.Errorf("dial: %v, want %q", err, tt.dial)
			}
			if line := l.next(t); !strings.Contains(line, tt.listener) {
				t.Errorf("listener: %s, want %q", line, tt.listener)
			}
		})
	}
}

func TestTLSForAnotherProtocolIsRefused(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	for what, protocols := range map[string][]string{"none": nil, "another": {"sunrpc"}} {
		b, l := newEnd(t, verbs.QPConfig{}), newLog()
		ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t), Logger: l.logger()})
		nc, err := tls.Dial("tcp", ln.Addr().String(), client.Client("127.0.0.1", protocols...))
		if err == nil {
			_, err = nc.Read(make([]byte, 1))
			nc.Close()
		}
		if err == nil {
			t.Errorf("%s: no error", what)
		}
		if line := l.next(t); !strings.Contains(line, "ALPN") && !strings.Contains(line, "application protocol") {
			t.Errorf("%s: %s", what, line)
		}
	}
	// And a server that does not know it.
	ln := nettest.Listen(t, "tcp4")
	cfg := server.mutual(t)
	cfg.GetConfigForClient = nil
	go func() {
		if nc, err := ln.Accept(); err == nil {
			tls.Server(nc, cfg).Handshake() // the client tells the test
			io.Copy(io.Discard, nc)
			nc.Close()
		}
	}()
	a := newEnd(t, verbs.QPConfig{})
	if _, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{TLS: client.Client("127.0.0.1")}); err == nil || !strings.Contains(err.Error(), "ALPN") {
		t.Errorf("dial: %v", err)
	}
}

// sessions are those that a client could resume.
type sessions chan string

func (s sessions) Get(string) (*tls.ClientSessionState, bool)   { return nil, false }
func (s sessions) Put(server string, _ *tls.ClientSessionState) { s <- server }

// Each connection is authenticated anew, whatever the configurations say.
func TestNoSessionCanBeResumed(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	cert, err := tls.X509KeyPair(server.cert.Cert, server.cert.Key)
	if err != nil {
		t.Fatal(err)
	}
	issuing := &tls.Config{Certificates: []tls.Certificate{cert}}
	tickets := make(sessions, 10)
	resuming := client.Client("127.0.0.1", "iwarp")
	resuming.SessionTicketsDisabled, resuming.ClientSessionCache = false, tickets

	b := newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: issuing})
	nc, err := tls.Dial("tcp", ln.Addr().String(), resuming)
	if err != nil {
		t.Fatal(err)
	}
	nc.Write(bytes.Repeat([]byte("x"), 20)) // not MPA
	io.Copy(io.Discard, nc)                 // beyond tickets
	nc.Close()
	if len(tickets) > 0 {
		t.Error("the server sends tickets")
	}

	issuing.NextProtos = []string{"iwarp"}
	raw := nettest.Listen(t, "tcp4")
	go func() {
		if nc, err := raw.Accept(); err == nil {
			conn := tls.Server(nc, issuing)
			conn.Write(bytes.Repeat([]byte("x"), 20))
			io.Copy(io.Discard, conn)
			conn.Close()
		}
	}()
	a := newEnd(t, verbs.QPConfig{})
	if _, err := cm.Dial(t.Context(), a.qp, "tcp", raw.Addr().String(), cm.Params{TLS: resuming}); err == nil {
		t.Error("garbage is taken for an MPA Reply")
	}
	if len(tickets) > 0 {
		t.Error("the client would resume the session")
	}
}

// A chain of certificates that is larger than any in use takes no memory.
func TestAPeerSendsLittleBeforeTheEndOfTheHandshake(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	chain, err := tls.X509KeyPair(client.cert.Cert, client.cert.Key)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		octets int
		want   string
	}{{48 << 10, "invalid start-up frame"}, {80 << 10, "too much before the end of the handshake"}} {
		long := chain
		for n := 0; n < tt.octets; n += len(chain.Certificate[0]) {
			long.Certificate = append(long.Certificate[:len(long.Certificate):len(long.Certificate)], chain.Certificate[0])
		}
		b, l := newEnd(t, verbs.QPConfig{}), newLog()
		ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t), Logger: l.logger()})
		cfg := client.Client("127.0.0.1", "iwarp")
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &long, nil }
		nc, err := tls.Dial("tcp", ln.Addr().String(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		nc.Write(bytes.Repeat([]byte("x"), 20)) // not MPA; fails if the server has closed
		if line := l.next(t); !strings.Contains(line, tt.want) {
			t.Errorf("%d octets: %s, want %q", tt.octets, line, tt.want)
		}
		nc.Close()
	}
}

// The time for the handshake is start-up's: a peer has no more for both.
func TestAHandshakeTakesNoLongerThanStartUpMay(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	silent := nettest.Listen(t, "tcp4")
	a, b, l := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{}), newLog()
	_, err := cm.Dial(t.Context(), a.qp, "tcp", silent.Addr().String(), cm.Params{TLS: client.Client("127.0.0.1"), MPA: mpa.Config{ReplyTimeout: 10 * time.Millisecond}})
	if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(err.Error(), "nothing within 10ms") {
		t.Errorf("dial: %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("no longer wanted")
	cancel(gone)
	nc, err := net.Dial("tcp", silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = cm.Connect(ctx, a.qp, nc, cm.Params{TLS: client.Client("127.0.0.1")}); !errors.Is(err, gone) {
		t.Errorf("connect: %v", err)
	}

	ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t), Logger: l.logger(), MPA: mpa.Config{RequestTimeout: 10 * time.Millisecond}})
	nc, err = net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if line := l.next(t); !strings.Contains(line, "nothing within 10ms") {
		t.Errorf("listener: %s", line)
	}
}

// Peers that begin handshakes and finish none hold no more places than the backlog has, and
// keep nobody out.
func TestUnfinishedHandshakesAreBounded(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t), Backlog: 4})
	var idle []net.Conn
	for range 40 {
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer nc.Close()
		if _, err := nc.Write([]byte{22, 3, 1, 2, 0, 1, 0}); err != nil { // the beginning of a ClientHello
			t.Fatal(err)
		}
		idle = append(idle, nc)
	}
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	if _, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{TLS: client.Client("127.0.0.1")}); err != nil {
		t.Fatal(err)
	}
	if err := nettest.Await(t, done); err != nil {
		t.Fatal(err)
	}
	for i, nc := range idle[:36] { // the oldest have lost their places
		if _, err := nc.Read(make([]byte, 1)); err == nil {
			t.Errorf("connection %d got an answer", i)
		}
	}
}

func TestAHandshakeOfManyOctetsIsRefused(t *testing.T) {
	nettest.CheckLeaks(t)
	_, server := pins(t)
	b, l := newEnd(t, verbs.QPConfig{}), newLog()
	ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t), Logger: l.logger()})
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	record := binary.BigEndian.AppendUint16([]byte{22, 3, 1}, 16<<10)
	record = append(record, make([]byte, 16<<10)...)
	record[5], record[7] = 1, 0xff // a ClientHello of 65280 octets, and then another
	for range 8 {
		if _, err := nc.Write(record); err != nil {
			break
		}
	}
	if line := l.next(t); !strings.Contains(line, "start-up failed") {
		t.Errorf("listener: %s", line)
	}
}
