package fileserver

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/rpctcp"
)

// pair returns configurations of a server and of a client with certificates of each other's
// authority.
func pair(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	a, err := tlsid.NewAuthority("tests", time.Now().AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	p, err := a.Issue([]string{"127.0.0.1"}, time.Now().AddDate(0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.Cert)
	server = &tls.Config{Certificates: []tls.Certificate{c}, ClientCAs: roots, ClientAuth: tls.VerifyClientCertIfGiven}
	return server, &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{c}}
}

func TestAnExportSaysWhichSecurityItAccepts(t *testing.T) {
	server, mutual := pair(t)
	simple := mutual.Clone()
	simple.Certificates = nil
	for set, accepted := range map[string]string{"none:tls:mtls": "none tls mtls", "tls:mtls": "tls mtls", "mtls": "mtls", "none": "none"} {
		dir, log := t.TempDir(), new(lines)
		s := startAt(t, dir, func(c *Config) {
			c.StartTLS, c.Logger = server, slog.New(slog.NewTextHandler(log, nil))
			var err error
			if c.XprtSec, err = mount.ParseXprtSec(set); err != nil {
				t.Fatal(err)
			}
		})
		clients := map[string]oncrpc.Caller{"none": overTCP(t, s.TCP().String())}
		for security, cfg := range map[string]*tls.Config{"tls": simple, "mtls": mutual} {
			c, err := rpctcp.NewClient(rpctcp.ClientConfig{Address: s.TCP().String(), Attempts: 1, TLS: cfg})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Close() })
			clients[security] = c
		}
		for security, c := range clients {
			m, err := mnt(c, "/") // also in the clear: see mount.Access
			if err != nil || m.Stat != nfs.MountOK {
				t.Fatal(m.Stat, err)
			}
			_, err = look(c, m.FH)
			if strings.Contains(" "+accepted+" ", " "+security+" ") {
				if err != nil {
					t.Errorf("xprtsec=%s refuses %s: %v", set, security, err)
				}
			} else if !errors.Is(err, tooWeak) {
				t.Errorf("xprtsec=%s answers %s by %v", set, security, err)
			} else if !strings.Contains(log.String(), "--xprtsec") {
				t.Errorf("the log does not say what was refused: %s", log)
			}
		}
		if _, err := look(overRDMA(t, s.RDMA().String()), nfs.FH("handle")); errors.Is(err, tooWeak) == s.access.Load().XprtSec.Has(origin.Plain) {
			t.Errorf("xprtsec=%s answers RDMA without TLS by %v", set, err)
		}
	}
}
