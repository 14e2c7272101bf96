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
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// A pin is a side with a certificate of its own that trusts one other.
type pin struct {
	cert tlsid.Pair
	*tlsid.Identity
}

// pins returns two sides that pin each other.
func pins(t testing.TB) (client, server *pin) {
	t.Helper()
	sides := [2]*pin{{}, {}}
	for i, name := range []string{"client.example", "127.0.0.1"} {
		p, err := tlsid.SelfSigned([]string{name, "host.example"}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		sides[i].cert = p
	}
	for i, s := range sides {
		s.open(t, sides[1-i].cert.Cert)
	}
	return sides[0], sides[1]
}

// open opens the side, which trusts ca.
func (p *pin) open(t testing.TB, ca []byte) {
	t.Helper()
	dir := t.TempDir()
	files := tlsid.Files{Cert: filepath.Join(dir, "cert"), Key: filepath.Join(dir, "key"), CA: filepath.Join(dir, "ca")}
	for name, text := range map[string][]byte{files.Cert: p.cert.Cert, files.Key: p.cert.Key, files.CA: ca} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	id, err := tlsid.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	p.Identity = id
}

// mutual is a server's configuration that requires a certificate.
func (p *pin) mutual(t testing.TB) *tls.Config {
	t.Helper()
	cfg, err := p.Server(tls.RequireAndVerifyClientCert)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// secured are two ends connected over TLS.
type secured struct {
	a, b   *end
	ca, cb *cm.Conn
	req    *cm.Request
}

// secure connects two ends over TLS.
func secure(t testing.TB, cfg cm.ListenConfig, pa, pb cm.Params) *secured {
	t.Helper()
	client, server := pins(t)
	cfg.TLS, pa.TLS = server.mutual(t), client.Client("127.0.0.1")
	s := &secured{a: newEnd(t, verbs.QPConfig{}), b: newEnd(t, verbs.QPConfig{})}
	ln := listen(t, s.b, "tcp4", cfg)
	done := accepted(t.Context(), ln, func(r *cm.Request) (err error) {
		s.req = r
		s.cb, err = r.Accept(t.Context(), s.b.qp, pb)
		return err
	})
	var err error
	s.ca, err = cm.Dial(t.Context(), s.a.qp, "tcp", ln.Addr().String(), pa)
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	return s
}

// do posts a request and waits for its success.
func (e *end) do(t testing.TB, wr verbs.SendWR) {
	t.Helper()
	wr.Flags |= verbs.Signaled
	if err := e.qp.PostSend(wr); err != nil {
		t.Fatal(err)
	}
	if wc := e.next(t); wc.Status != verbs.Success {
		t.Fatalf("%v: %v, %v", wr.Op, wc.Status, e.qp.Err())
	}
}

func TestEveryStartUpRunsOverTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, tt := range []struct {
		what    string
		ours    mpa.Config
		theirs  mpa.Config
		wantCRC bool
	}{
		{"as it comes", mpa.Config{}, mpa.Config{}, true},
		{"revision 1", mpa.Config{Profile: mpa.ProfileRFC5044}, mpa.Config{}, true},
		{"revision 1, at the responder", mpa.Config{Profile: mpa.ProfileRFC5044}, mpa.Config{Profile: mpa.ProfileRFC5044}, true},
		{"the Consortium's", mpa.Config{Profile: mpa.ProfileRDMAC}, mpa.Config{Profile: mpa.ProfileRDMAC}, true},
		{"peer-to-peer", mpa.Config{PeerToPeer: true}, mpa.Config{}, true},
		{"peer-to-peer by a Write", mpa.Config{PeerToPeer: true, RTR: mpa.RTRWrite}, mpa.Config{}, true},
		{"peer-to-peer by a Read", mpa.Config{PeerToPeer: true, RTR: mpa.RTRRead}, mpa.Config{}, true},
		{"without CRC", mpa.Config{NoCRC: true}, mpa.Config{NoCRC: true}, false},
		{"CRC, as one asks", mpa.Config{NoCRC: true}, mpa.Config{}, true},
		{"markers to the initiator", mpa.Config{Markers: true}, mpa.Config{}, true},
		{"markers to the responder", mpa.Config{}, mpa.Config{Markers: true}, true},
		{"markers and no CRC", mpa.Config{Markers: true, NoCRC: true}, mpa.Config{Markers: true, NoCRC: true}, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s := secure(t, cm.ListenConfig{MPA: tt.theirs}, cm.Params{MPA: tt.ours, PrivateData: []byte("q")}, cm.Params{MPA: tt.theirs, PrivateData: []byte("r")})
			if p := s.ca.MPA(); p.CRC != tt.wantCRC || p.RecvMarkers != (tt.ours.Markers || tt.ours.Profile == mpa.ProfileRDMAC) {
				t.Errorf("negotiated %+v", p)
			}
			if string(s.ca.PrivateData()) != "r" || string(s.cb.PrivateData()) != "q" {
				t.Errorf("private data %q, %q", s.ca.PrivateData(), s.cb.PrivateData())
			}
			for i := range s.a.buf {
				s.a.buf[i], s.b.buf[i] = byte(i*7), byte(i*5)
			}
			const n = 300_001
			s.a.do(t, verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{s.a.mr.SGE(0, n)}, Remote: s.b.mr.Remote(500_000)})
			s.a.do(t, verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{s.a.mr.SGE(500_000, n)}, Remote: s.b.mr.Remote(0)})
			s.b.do(t, verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{s.b.mr.SGE(0, 17)}, Remote: s.a.mr.Remote(900_000)})
			s.a.do(t, verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{s.a.mr.SGE(950_000, 1)}, Remote: s.b.mr.Remote(0)})
			if !bytes.Equal(s.a.buf[:n], s.b.buf[500_000:500_000+n]) || !bytes.Equal(s.b.buf[:n], s.a.buf[500_000:500_000+n]) {
				t.Error("the octets differ")
			}
			if err := s.ca.Shutdown(t.Context()); err != nil {
				t.Errorf("close: %v", err)
			}
			if state, err := s.b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || state != verbs.Idle {
				t.Errorf("the other side is %v, %v", state, s.b.qp.Err())
			}
		})
	}
}

func TestAConnectionKnowsThePeersCertificate(t *testing.T) {
	s := secure(t, cm.ListenConfig{}, cm.Params{}, cm.Params{})
	for _, tt := range []struct {
		what  string
		state *tls.ConnectionState
		want  string
	}{
		{"the request", s.req.TLS(), "dns:client.example,dns:host.example"},
		{"its origin", s.req.Origin().TLS, "dns:client.example,dns:host.example"},
		{"the server's connection", s.cb.TLS(), "dns:client.example,dns:host.example"},
		{"the client's connection", s.ca.TLS(), "dns:host.example,ip:127.0.0.1"},
	} {
		switch {
		case tt.state == nil || len(tt.state.PeerCertificates) == 0:
			t.Errorf("%s: no certificate", tt.what)
		case origin.NameIn(tt.state.PeerCertificates[0]) != tt.want:
			t.Errorf("%s: %s, want %s", tt.what, origin.NameIn(tt.state.PeerCertificates[0]), tt.want)
		case tt.state.Version != tls.VersionTLS13 || tt.state.NegotiatedProtocol != "iwarp":
			t.Errorf("%s: version %#x, protocol %q", tt.what, tt.state.Version, tt.state.NegotiatedProtocol)
		}
	}
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ca, cb := connect(t, a, b, cm.Params{}, cm.Params{})
	if ca.TLS() != nil || cb.TLS() != nil || ca.KeyLimitNear() != nil {
		t.Error("a plain connection has a state of TLS")
	}
}

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

func TestWhatWasSentBeforeTheCloseArrivesOverTLS(t *testing.T) {
	nettest.CheckLeaks(t)
	const messages, size = 16, 60_000
	for _, first := range []string{"client", "server", "both"} {
		s := secure(t, cm.ListenConfig{}, cm.Params{MPA: mpa.Config{PeerToPeer: true}}, cm.Params{})
		ends, conns := []*end{s.a, s.b}, []*cm.Conn{s.ca, s.cb}
		for i := range messages {
			for _, e := range ends {
				if err := e.qp.PostRecv(verbs.RecvWR{ID: uint64(i), SGL: []verbs.SGE{e.mr.SGE(i*size, size)}}); err != nil {
					t.Fatal(err)
				}
			}
		}
		closers := map[string][]int{"client": {0}, "server": {1}, "both": {0, 1}}[first]
		sent := messages
		if first == "both" {
			sent = 0 // a message in Closing is an error (RDMA Verbs §6.2.3)
		}
		var errs []<-chan error
		for _, i := range closers {
			for range sent {
				if err := ends[i].qp.PostSend(verbs.SendWR{Op: verbs.OpSend, SGL: []verbs.SGE{ends[i].mr.SGE(0, size)}}); err != nil {
					t.Fatal(err)
				}
			}
			done := make(chan error, 1)
			go func() { done <- conns[i].Shutdown(t.Context()) }()
			errs = append(errs, done)
		}
		for _, i := range closers {
			receiver := ends[1-i]
			for n := range sent {
				if wc := receiver.next(t); wc.Status != verbs.Success || wc.ID != uint64(n) {
					t.Fatalf("%s closes: receive %d: %v, number %d, %v", first, n, wc.Status, wc.ID, receiver.qp.Err())
				}
			}
		}
		for _, done := range errs {
			if err := nettest.Await(t, done); err != nil {
				t.Errorf("%s closes: %v", first, err)
			}
		}
		for _, e := range ends {
			if state, err := e.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || state != verbs.Idle {
				t.Errorf("%s closes: %v, %v", first, state, e.qp.Err())
			}
		}
	}
}

// FIN without close_notify may be an attacker's.
func TestATruncatedStreamIsNoGracefulClose(t *testing.T) {
	nettest.CheckLeaks(t)
	client, server := pins(t)
	for _, how := range []string{"FIN", "reset"} {
		a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
		ln := listen(t, b, "tcp4", cm.ListenConfig{TLS: server.mutual(t)})
		done := accepted(t.Context(), ln, func(r *cm.Request) error {
			_, err := r.Accept(t.Context(), b.qp, cm.Params{})
			return err
		})
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = cm.Connect(t.Context(), a.qp, nc, cm.Params{TLS: client.Client("127.0.0.1")}); err != nil {
			t.Fatal(err)
		}
		if err := nettest.Await(t, done); err != nil {
			t.Fatal(err)
		}
		if how == "FIN" {
			nc.(*net.TCPConn).CloseWrite()
		} else {
			a.qp.Abort()
		}
		if state, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || state != verbs.Error {
			t.Errorf("%s: the other side is %v, %v", how, state, err)
		}
	}
}

func TestAKeyIsUsedForALimitedNumberOfRecords(t *testing.T) {
	nettest.CheckLeaks(t)
	for _, limited := range []string{"client", "server"} {
		pa, cfg := cm.Params{}, cm.ListenConfig{}
		if limited == "client" {
			pa.KeyRecords = 64
		} else {
			cfg.KeyRecords = 64
		}
		s := secure(t, cfg, pa, cm.Params{})
		read := verbs.SendWR{Op: verbs.OpRead, Flags: verbs.Signaled, SGL: []verbs.SGE{s.a.mr.SGE(0, 1<<20)}, Remote: s.b.mr.Remote(0)} // 65 records or more of the server's
		write := verbs.SendWR{Op: verbs.OpWrite, Flags: verbs.Signaled, SGL: []verbs.SGE{s.a.mr.SGE(0, 50<<14)}, Remote: s.b.mr.Remote(0)}
		if limited == "client" {
			select {
			case <-s.ca.KeyLimitNear():
				t.Error("told at the beginning")
			default:
			}
			s.a.do(t, write) // 50 full records and a bit
			nettest.Await(t, s.ca.KeyLimitNear())
			if err := s.a.qp.PostSend(write); err != nil {
				t.Fatal(err)
			}
		} else if err := s.a.qp.PostSend(read); err != nil {
			t.Fatal(err)
		}
		if wc := s.a.next(t); wc.Status == verbs.Success {
			t.Errorf("%s: %v", limited, wc.Status)
		}
		at := s.a
		if limited == "server" {
			at = s.b
		}
		if state, err := at.qp.WaitState(t.Context(), verbs.Error); err != nil || !errors.Is(at.qp.Err(), cm.ErrKeyLimit) {
			t.Errorf("%s: %v, %v", limited, state, at.qp.Err())
		}
	}
	// A client learns of the server's key, too.
	s := secure(t, cm.ListenConfig{}, cm.Params{KeyRecords: 64}, cm.Params{})
	s.a.do(t, verbs.SendWR{Op: verbs.OpRead, SGL: []verbs.SGE{s.a.mr.SGE(0, 1<<20)}, Remote: s.b.mr.Remote(0)})
	nettest.Await(t, s.ca.KeyLimitNear())
}

// A recorder keeps what is written to a connection.
type recorder struct {
	net.Conn
	mu    sync.Mutex
	sizes []int
	first []byte
}

func (r *recorder) NetConn() net.Conn { return r.Conn }

func (r *recorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.first == nil {
		r.first = bytes.Clone(p)
	}
	r.sizes = append(r.sizes, len(p))
	return r.Conn.Write(p)
}

func TestFPDUsFillRecordsAndWrapIsInside(t *testing.T) {
	var r *recorder
	wrap := func(nc net.Conn) net.Conn {
		r = &recorder{Conn: nc}
		return r
	}
	for _, markers := range []bool{false, true} {
		s := secure(t, cm.ListenConfig{MPA: mpa.Config{Markers: markers}}, cm.Params{Wrap: wrap}, cm.Params{MPA: mpa.Config{Markers: markers}})
		s.a.do(t, verbs.SendWR{Op: verbs.OpWrite, SGL: []verbs.SGE{s.a.mr.SGE(0, 1<<20)}, Remote: s.b.mr.Remote(0)})
		r.mu.Lock()
		if !bytes.HasPrefix(r.first, []byte("MPA ID Req Frame")) {
			t.Errorf("markers %v: %q goes first", markers, r.first)
		}
		whole := 0
		for _, n := range r.sizes[1:] {
			if n%(16<<10) == 0 {
				whole++
			}
		}
		if whole < len(r.sizes[1:])-1 {
			t.Errorf("markers %v: writes of %v octets", markers, r.sizes)
		}
		r.mu.Unlock()
	}
}
