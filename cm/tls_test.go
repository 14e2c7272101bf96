// Streams over TLS: ends that pin each other, and what they do as without TLS.

package cm_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"path/filepath"
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
