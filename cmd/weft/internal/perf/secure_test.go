package perf

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/tlsid"
)

// credentials returns the configurations of a peer and of a driver who verify each other.
func credentials(t *testing.T) (peer, driver *tls.Config) {
	t.Helper()
	p, err := tlsid.SelfSigned([]string{"127.0.0.1"}, time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(p.Cert)
	peer = &tls.Config{Certificates: []tls.Certificate{cert}, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert}
	return peer, &tls.Config{Certificates: []tls.Certificate{cert}, RootCAs: trusted, ServerName: "127.0.0.1"}
}

// quickSend measures little.
func quickSend(addr string, cfg *tls.Config) Config {
	c := quick(addr, Send)
	c.CRC, c.Sizes, c.TLS = []bool{true}, []int{100}, cfg
	return c
}

// A wiretap forwards connections and keeps what was said on them.
type wiretap struct {
	to    string
	mu    sync.Mutex
	heard bytes.Buffer
}

func (w *wiretap) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.heard.Write(p)
}

// listen forwards connections until the test ends.
func (w *wiretap) listen(t *testing.T) (addr string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { ln.Close(); all.Wait() })
	forward := func(from, to *net.TCPConn) {
		_, _ = io.Copy(io.MultiWriter(to, w), from)
		to.CloseWrite()
	}
	all.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", w.to)
			if err != nil {
				near.Close()
				continue
			}
			all.Go(func() { forward(near.(*net.TCPConn), far.(*net.TCPConn)) })
			all.Go(func() { forward(far.(*net.TCPConn), near.(*net.TCPConn)) })
		}
	})
	return ln.Addr().String()
}

func TestNothingIsAgreedOnInTheClear(t *testing.T) {
	peer, driver := credentials(t)
	for name, tt := range map[string]struct {
		peer, driver *tls.Config
		clear        bool
	}{"with TLS": {peer, driver, false}, "without": {nil, nil, true}} {
		t.Run(name, func(t *testing.T) {
			addr, _ := serve(t, PeerConfig{TLS: tt.peer})
			w := &wiretap{to: addr}
			if _, err := Run(t.Context(), quickSend(w.listen(t), tt.driver)); err != nil {
				t.Fatal(err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			for _, words := range []string{protocol, `"do"`, `"stag"`} {
				if got := strings.Contains(w.heard.String(), words); got != tt.clear {
					t.Errorf("%q in the clear: %v, want %v", words, got, tt.clear)
				}
			}
		})
	}
}

// Each end may lack TLS, or a certificate that the other accepts: the driver says so in
// one sentence, no session begins, and whoever is welcome is served afterwards.
func TestADriverIsToldWhatItsTLSLacks(t *testing.T) {
	peer, driver := credentials(t)
	nobody := driver.Clone()
	nobody.Certificates = nil
	stranger, doubter := credentials(t)
	stranger.RootCAs, stranger.ServerName = driver.RootCAs, driver.ServerName
	doubter.Certificates = driver.Certificates
	for name, tt := range map[string]struct {
		peer, driver *tls.Config
		want         string
	}{
		"a driver without TLS":            {peer, nil, "at the other end: this end requires TLS"},
		"a peer without TLS":              {nil, driver, "TLS: the other end does not use TLS"},
		"no certificate":                  {peer, nobody, "TLS: the other end refuses: tls: certificate required"},
		"a certificate that is unknown":   {peer, stranger, "TLS: the other end refuses: tls: "},
		"a certificate it does not trust": {peer, doubter, "certificate signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			addr, _ := serve(t, PeerConfig{TLS: tt.peer, limits: limits{open: time.Hour, idle: time.Hour, run: time.Hour}})
			_, err := Run(t.Context(), quickSend(addr, tt.driver))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the driver failed with %v, want %q", err, tt.want)
			}
			var failed *cm.TLSError
			if tt.driver != nil && !errors.As(err, &failed) {
				t.Errorf("the driver failed with %T, want a TLSError", err)
			}
			welcome := driver
			if tt.peer == nil {
				welcome = nil
			}
			if _, err := Run(t.Context(), quickSend(addr, welcome)); err != nil {
				t.Errorf("a driver afterwards: %v", err)
			}
		})
	}
}

// A server of another protocol may have the same certificates.
func TestAControlConnectionIsForNoOtherProtocol(t *testing.T) {
	peer, driver := credentials(t)
	addr, _ := serve(t, PeerConfig{TLS: peer})
	for name, protocols := range map[string][]string{"another": {"iwarp"}, "none": nil} {
		t.Run(name, func(t *testing.T) {
			nc := call(t, addr, string(rune(controlMark)))
			cfg := driver.Clone()
			cfg.NextProtos = protocols
			c := tls.Client(nc, cfg)
			err := c.HandshakeContext(t.Context())
			if err == nil {
				_, err = io.WriteString(c, helloOf(protocol, tokenLen, 1, 9, 1)[1:])
			}
			if err == nil {
				_, err = c.Read(make([]byte, 1))
			}
			if err == nil {
				t.Error("the peer answered")
			}
		})
	}
}
