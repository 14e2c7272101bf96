// The configurations of one side.

package tlsid

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// Files names the files of one side, all PEM.
type Files struct {
	// Cert has the certificate with the intermediate ones behind it, Key its
	// private key. A client may do without both.
	Cert, Key string

	// CA has the certificates that are trusted: of authorities, or of peers. Empty
	// is the system's authorities, for clients; a server then trusts nobody.
	CA string

	// KeyLog, if not empty, gets the secrets of each connection, as Wireshark reads
	// them (NSS key log). Whoever has that file can decrypt recordings.
	KeyLog string

	// Logger, if not nil, reports changed files that can't be used. The previous
	// ones stay in use then.
	Logger *slog.Logger
}

// An Identity makes TLS configurations of files. They are all for TLS 1.3 and without
// session resumption, so that every connection is judged by the files of the moment.
// Its methods may be called by any goroutine.
type Identity struct {
	keyLog io.Writer // nil is none
	files  *reloader
}

// Open reads the files. The error names the file that can't be used.
func Open(f Files) (*Identity, error) {
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("a certificate and its private key are needed together")
	}
	r, err := newReloader(f)
	if err != nil {
		return nil, err
	}
	id := &Identity{files: r}
	if f.KeyLog != "" {
		log, err := os.OpenFile(f.KeyLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			return nil, fmt.Errorf("key log: %w", err)
		}
		id.keyLog = log // until the program ends: connections write to it at any time
	}
	return id, nil
}

// Server returns the configuration of a server. auth says what it asks of clients:
// tls.NoClientCert, tls.VerifyClientCertIfGiven or tls.RequireAndVerifyClientCert. The
// protocols are those of ALPN. It fails if there is no certificate, or no authority to
// verify certificates of clients with.
func (id *Identity) Server(auth tls.ClientAuthType, protocols ...string) (*tls.Config, error) {
	now := id.files.now()
	switch {
	case now.cert == nil:
		return nil, errors.New("a server needs a certificate and its private key")
	case auth != tls.NoClientCert && now.roots == nil:
		return nil, errors.New("a server that verifies certificates of clients needs the authority that signed them")
	}
	cfg := id.server(now, auth, protocols)
	cfg.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return id.server(id.files.now(), auth, protocols), nil
	}
	return cfg, nil
}

func (id *Identity) server(now *material, auth tls.ClientAuthType, protocols []string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, KeyLogWriter: id.keyLog,
		SessionTicketsDisabled: true,
		Certificates:           []tls.Certificate{*now.cert},
		ClientAuth:             auth, ClientCAs: now.roots,
	}
}

// Client returns the configuration of a client that connects to a server of this name,
// or IP address. The protocols are those of ALPN. Each connection presents the
// certificate of the moment, if there is one, and verifies the server's with the
// authorities of the moment. So VerifiedChains of its tls.ConnectionState is empty;
// PeerCertificates is what was verified.
func (id *Identity) Client(name string, protocols ...string) *tls.Config {
	name, _, _ = strings.Cut(name, "%") // the zone of an address is this host's alone
	return &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: protocols, KeyLogWriter: id.keyLog,
		ServerName:             name,
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // VerifyConnection does it, as RootCAs can't change
		VerifyConnection:       func(s tls.ConnectionState) error { return id.verify(s, name) },
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if c := id.files.now().cert; c != nil {
				return c, nil
			}
			return new(tls.Certificate), nil
		},
	}
}

// verify verifies the certificate of a server.
func (id *Identity) verify(s tls.ConnectionState, name string) error {
	if name == "" {
		return errors.New("tls: the name of the server is not known")
	}
	certs := s.PeerCertificates
	opts := x509.VerifyOptions{Roots: id.files.now().roots, DNSName: name, Intermediates: x509.NewCertPool()}
	for _, c := range certs[1:] {
		opts.Intermediates.AddCert(c)
	}
	if _, err := certs[0].Verify(opts); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: certs, Err: err}
	}
	return nil
}
