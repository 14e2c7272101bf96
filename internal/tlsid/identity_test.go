package tlsid

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/iwarptest"
	"github.com/weft-rdma/weft/origin"
)

// never is when the certificates of tests end.
var never = time.Date(2999, 1, 1, 0, 0, 0, 0, time.UTC)

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A side has the files of one side below a directory.
type side struct {
	t *testing.T
	Files
}

func newSide(t *testing.T, p Pair, ca ...[]byte) *side {
	dir := t.TempDir()
	s := &side{t: t}
	if p.Cert != nil {
		s.Cert, s.Key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
		s.write(s.Cert, p.Cert)
		s.write(s.Key, p.Key)
	}
	if len(ca) > 0 {
		s.CA = filepath.Join(dir, "ca.pem")
		s.write(s.CA, bytes.Join(ca, nil))
	}
	return s
}

func (s *side) write(name string, text []byte) {
	s.t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *side) open() *Identity { return must[*Identity](s.t)(Open(s.Files)) }

// shake makes a handshake, and returns both sides' errors and states. A client reads one
// octet of the server's, so that it learns what the server thinks of its certificate.
func shake(t *testing.T, client, server *tls.Config) (states [2]tls.ConnectionState, errs [2]error) {
	t.Helper()
	a, b := iwarptest.Pipe() // buffered: both sides may write at a time
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer b.Close()
		s := tls.Server(b, server)
		if errs[1] = s.Handshake(); errs[1] == nil {
			states[1] = s.ConnectionState()
			s.Write([]byte{1})
		}
	}()
	c := tls.Client(a, client)
	if errs[0] = c.Handshake(); errs[0] == nil {
		states[0] = c.ConnectionState()
		_, errs[0] = c.Read(make([]byte, 1))
	}
	a.Close()
	<-done
	return states, errs
}

func authority(t *testing.T, name string) *Authority {
	return must[*Authority](t)(NewAuthority(name, never))
}

func issue(t *testing.T, a *Authority, names ...string) Pair {
	return must[Pair](t)(a.Issue(names, never))
}

func selfSigned(t *testing.T, names ...string) Pair {
	return must[Pair](t)(SelfSigned(names, never))
}

func TestSidesTrustWhatTheirFilesSay(t *testing.T) {
	ours, theirs := authority(t, "ours"), authority(t, "theirs")
	host := issue(t, ours, "host.example", "192.0.2.7", "2001:db8::7")
	user := issue(t, ours, "user.example")
	alien := issue(t, theirs, "host.example")
	lone, pinned := selfSigned(t, "host.example"), selfSigned(t, "peer.example")
	leaf := must[tls.Certificate](t)(tls.X509KeyPair(lone.Cert, lone.Key))
	forged := must[Pair](t)((&Authority{Pair: lone, cert: leaf.Leaf, key: leaf.PrivateKey}).Issue([]string{"host.example"}, never))
	for _, tt := range []struct {
		what           string
		server         *side
		auth           tls.ClientAuthType
		client         *side
		name           string
		client0, serve string // parts of the errors; "" is none
	}{
		{"by DNS name", newSide(t, host), tls.NoClientCert, newSide(t, Pair{}, ours.Cert), "host.example", "", ""},
		{"by IPv4 address", newSide(t, host), tls.NoClientCert, newSide(t, Pair{}, ours.Cert), "192.0.2.7", "", ""},
		{"by IPv6 address, with a zone", newSide(t, host), tls.NoClientCert, newSide(t, Pair{}, ours.Cert), "2001:db8::7%eth0", "", ""},
		{"another name", newSide(t, host), tls.NoClientCert, newSide(t, Pair{}, ours.Cert), "other.example", "not other.example", "bad certificate"},
		{"another address", newSide(t, host), tls.NoClientCert, newSide(t, Pair{}, ours.Cert), "192.0.2.8", "not 192.0.2.8", "bad certificate"},
		{"no name", newSide(t, host), tls.NoClientCert, newSide(t, Pair{}, ours.Cert), "", "name of the server is not known", "bad certificate"},
		{"another authority", newSide(t, alien), tls.NoClientCert, newSide(t, Pair{}, ours.Cert), "host.example", "unknown authority", "bad certificate"},
		{"both authorities", newSide(t, alien), tls.NoClientCert, newSide(t, Pair{}, ours.Cert, theirs.Cert), "host.example", "", ""},
		{"the system's authorities", newSide(t, host), tls.NoClientCert, newSide(t, Pair{}), "host.example", "certificate", "bad certificate"},
		{"mutual", newSide(t, host, ours.Cert), tls.RequireAndVerifyClientCert, newSide(t, user, ours.Cert), "host.example", "", ""},
		{"mutual, none given", newSide(t, host, ours.Cert), tls.RequireAndVerifyClientCert, newSide(t, Pair{}, ours.Cert), "host.example", "certificate required", "didn't provide a certificate"},
		{"mutual, another authority's", newSide(t, host, ours.Cert), tls.RequireAndVerifyClientCert, newSide(t, alien, ours.Cert), "host.example", "unknown certificate authority", "unknown authority"},
		{"if given, none", newSide(t, host, ours.Cert), tls.VerifyClientCertIfGiven, newSide(t, Pair{}, ours.Cert), "host.example", "", ""},
		{"if given, another authority's", newSide(t, host, ours.Cert), tls.VerifyClientCertIfGiven, newSide(t, alien, ours.Cert), "host.example", "unknown certificate authority", "unknown authority"},
		{"two that pin each other", newSide(t, lone, pinned.Cert), tls.RequireAndVerifyClientCert, newSide(t, pinned, lone.Cert), "host.example", "", ""},
		{"pinned, with another name", newSide(t, lone, pinned.Cert), tls.RequireAndVerifyClientCert, newSide(t, pinned, lone.Cert), "other.example", "not other.example", "bad certificate"},
		{"pinned, another's client", newSide(t, lone, pinned.Cert), tls.RequireAndVerifyClientCert, newSide(t, user, lone.Cert), "host.example", "unknown certificate authority", "unknown authority"},
		{"what a pinned one has signed", newSide(t, forged), tls.NoClientCert, newSide(t, Pair{}, lone.Cert), "host.example", "certificate", "bad certificate"},
	} {
		server, err := tt.server.open().Server(tt.auth, "test")
		if err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		states, errs := shake(t, tt.client.open().Client(tt.name, "test"), server)
		for i, want := range []string{tt.client0, tt.serve} {
			if (errs[i] == nil) != (want == "") || errs[i] != nil && !strings.Contains(errs[i].Error(), want) {
				t.Errorf("%s: side %d: %v, want %q", tt.what, i, errs[i], want)
			}
			if want == "" && tt.client0 == "" && (states[i].Version != tls.VersionTLS13 || states[i].NegotiatedProtocol != "test") {
				t.Errorf("%s: side %d: version %#x, protocol %q", tt.what, i, states[i].Version, states[i].NegotiatedProtocol)
			}
		}
	}
}

func TestCertificatesExpireOnBothSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		soon := time.Now().Add(time.Hour)
		brief := must[Pair](t)(SelfSigned([]string{"host.example"}, soon))
		long := must[Pair](t)(SelfSigned([]string{"host.example"}, never))
		sides := func(server, client Pair) (errs [2]error) {
			cfg := must[*tls.Config](t)(newSide(t, server, client.Cert).open().Server(tls.RequireAndVerifyClientCert))
			_, errs = shake(t, newSide(t, client, server.Cert).open().Client("host.example"), cfg)
			return errs
		}
		if errs := sides(brief, brief); errs != [2]error{} {
			t.Fatal(errs)
		}
		time.Sleep(time.Hour + time.Minute)
		if errs := sides(brief, long); !strings.Contains(errs[0].Error(), "expired") {
			t.Errorf("an expired server: %v", errs)
		}
		if errs := sides(long, brief); !strings.Contains(errs[1].Error(), "expired") || !strings.Contains(errs[0].Error(), "expired") {
			t.Errorf("an expired client: %v", errs)
		}
	})
}

func TestChangedFilesAreUsedWithoutRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, fresh := selfSigned(t, "old.example"), selfSigned(t, "fresh.example")
		user, other := selfSigned(t, "user.example"), selfSigned(t, "other.example")
		var log bytes.Buffer
		server, client := newSide(t, old, user.Cert), newSide(t, user, old.Cert)
		server.Logger = slog.New(slog.NewTextHandler(&log, nil))
		served := server.open()
		cfg := must[*tls.Config](t)(served.Server(tls.RequireAndVerifyClientCert, "test"))
		id := client.open()
		try := func(name string) error {
			states, errs := shake(t, id.Client(name, "test"), cfg)
			if errs == [2]error{} && states[1].PeerCertificates[0].Subject.CommonName == "" {
				t.Error("the server does not know its client")
			}
			return errors.Join(errs[0], errs[1])
		}
		if err := try("old.example"); err != nil {
			t.Fatal(err)
		}

		// One file of two: the previous certificate stays.
		server.write(server.Cert, fresh.Cert)
		time.Sleep(time.Second)
		for range 3 {
			if err := try("old.example"); err != nil {
				t.Fatalf("with half of the files replaced: %v", err)
			}
			time.Sleep(time.Second)
		}
		if n := strings.Count(log.String(), "private key does not match"); n != 1 {
			t.Errorf("reported %d times: %s", n, &log)
		}

		// The other one, and what both trust.
		server.write(server.Key, fresh.Key)
		client.write(client.CA, fresh.Cert)
		client.write(client.Cert, other.Cert)
		client.write(client.Key, other.Key)
		server.write(server.CA, other.Cert)
		time.Sleep(time.Second)
		if err := try("fresh.example"); err != nil {
			t.Errorf("after the change: %v", err)
		}
		if err := try("old.example"); err == nil {
			t.Error("the old name is still good")
		}

		// Files that are gone.
		if err := os.Remove(server.CA); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if err := try("fresh.example"); err != nil {
			t.Errorf("without the file: %v", err)
		}
	})
}

func TestFilesAreLookedAtOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSide(t, selfSigned(t, "a.example"))
		id := s.open()
		first := id.files.now()
		p := selfSigned(t, "b.example")
		s.write(s.Cert, p.Cert)
		s.write(s.Key, p.Key)
		time.Sleep(time.Second - 1)
		if id.files.now() != first {
			t.Error("read before a second has passed")
		}
		time.Sleep(time.Nanosecond)
		if id.files.now() == first {
			t.Error("not read after a second")
		}
	})
}

func TestUnusableFilesAreErrors(t *testing.T) {
	pair, other := selfSigned(t, "a.example"), selfSigned(t, "b.example")
	good := newSide(t, pair, pair.Cert)
	mixed := newSide(t, Pair{pair.Cert, other.Key})
	secret := newSide(t, pair, pair.Cert, pair.Key)
	empty := newSide(t, pair, []byte("nothing\n"))
	damaged := newSide(t, pair, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte{1}}))
	for _, tt := range []struct {
		what  string
		files Files
		want  string
	}{
		{"a certificate alone", Files{Cert: good.Cert}, "needed together"},
		{"a key alone", Files{Key: good.Key}, "needed together"},
		{"no such file", Files{CA: good.CA + "x"}, good.CA + "x"},
		{"another's key", mixed.Files, mixed.Key + ": tls: private key does not match"},
		{"a key among the authorities", secret.Files, secret.CA + ": found a PEM block of type PRIVATE KEY"},
		{"no certificate", empty.Files, empty.CA + ": no certificate"},
		{"a damaged one", damaged.Files, damaged.CA + ": x509"},
		{"a key log that can't be written", Files{KeyLog: filepath.Join(good.CA, "log")}, "key log"},
	} {
		if _, err := Open(tt.files); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.want)
		}
	}
	if _, err := newSide(t, Pair{}, pair.Cert).open().Server(tls.NoClientCert); err == nil {
		t.Error("a server without a certificate")
	}
	// The system's authorities would admit everybody who has bought a certificate.
	for _, auth := range []tls.ClientAuthType{tls.VerifyClientCertIfGiven, tls.RequireAndVerifyClientCert} {
		if _, err := newSide(t, pair).open().Server(auth); err == nil {
			t.Errorf("a server that verifies clients (%v) without an authority", auth)
		}
	}
}

func TestKeyLogHasTheSecretsOfBothSides(t *testing.T) {
	pair := selfSigned(t, "host.example")
	server, client := newSide(t, pair), newSide(t, Pair{}, pair.Cert)
	server.KeyLog, client.KeyLog = filepath.Join(t.TempDir(), "server.log"), filepath.Join(t.TempDir(), "client.log")
	cfg := must[*tls.Config](t)(server.open().Server(tls.NoClientCert))
	if _, errs := shake(t, client.open().Client("host.example"), cfg); errs != [2]error{} {
		t.Fatal(errs)
	}
	for _, name := range []string{server.KeyLog, client.KeyLog} {
		text := must[[]byte](t)(os.ReadFile(name))
		for _, label := range []string{"CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0"} {
			if !bytes.Contains(text, []byte(label)) {
				t.Errorf("no %s in %s", label, text)
			}
		}
	}
}

func TestIssuedCertificatesServeBothRolesAndSignNothing(t *testing.T) {
	a := authority(t, "Weft test")
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	short := must[*Authority](t)(NewAuthority("short", soon))
	for _, tt := range []struct {
		what  string
		pair  Pair
		until time.Time
	}{
		{"issued", issue(t, a, "host.example", "192.0.2.7"), never},
		{"by an authority that ends earlier", issue(t, short, "host.example", "192.0.2.7"), soon},
		{"self-signed", selfSigned(t, "host.example.", "::ffff:192.0.2.7"), never},
	} {
		c := must[tls.Certificate](t)(tls.X509KeyPair(tt.pair.Cert, tt.pair.Key)).Leaf
		if c.IsCA || c.KeyUsage != x509.KeyUsageDigitalSignature || len(c.ExtKeyUsage) != 2 || c.PublicKeyAlgorithm != x509.ECDSA {
			t.Errorf("%s: authority %v, usage %v %v, %v", tt.what, c.IsCA, c.KeyUsage, c.ExtKeyUsage, c.PublicKeyAlgorithm)
		}
		if !c.NotAfter.Equal(tt.until) || !c.NotBefore.Before(time.Now()) {
			t.Errorf("%s: valid from %v to %v", tt.what, c.NotBefore, c.NotAfter)
		}
		if got := origin.NameIn(c); got != "dns:host.example,ip:192.0.2.7" {
			t.Errorf("%s: for %s", tt.what, got)
		}
	}
	for _, names := range [][]string{nil, {""}, {"a b"}, {"host.example:443"}, {"nfs://host"}, {"a@b"}} {
		if _, err := a.Issue(names, never); err == nil {
			t.Errorf("issued for %q", names)
		}
	}
	if _, err := OpenAuthority(issue(t, a, "host.example")); err == nil {
		t.Error("a host's certificate passed for an authority's")
	}
}
