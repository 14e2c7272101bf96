// This file holds the flags for TLS, which all commands that make connections share.

package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/cmd/weft/internal/dropin"
	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/rpctcp"
)

// Names of files in a directory of weft cert.
const (
	certFile      = "cert.pem"
	keyFile       = "key.pem"
	caFile        = "ca.pem"
	authorityFile = "ca.key"
)

// tlsDir returns the directory of certificates of this user; "" if there is none.
func tlsDir() string {
	if dir := stateDir(); dir != "" {
		return filepath.Join(dir, "tls")
	}
	return ""
}

// encryption holds the flags for TLS.
type encryption struct {
	on             bool
	cert, key, ca  string
	name, keyLog   string
	cmd            *cobra.Command
	opened         *tlsid.Identity
	authorityGiven bool // there are authorities that are not the system's
}

func (e *encryption) register(cmd *cobra.Command) {
	e.cmd = cmd
	f := cmd.Flags()
	f.BoolVar(&e.on, "tls", false, "encrypt connections by TLS 1.3; the other --tls flags imply it")
	f.StringVar(&e.cert, "tls-cert", "", "present the certificate in `FILE` (PEM; default: that of weft cert, if there is one)")
	f.StringVar(&e.key, "tls-key", "", "`FILE` with the private key of --tls-cert")
	f.StringVar(&e.ca, "tls-ca", "", "trust the authorities, and peers, whose certificates are in `FILE` (default: those of weft cert, if there are some, or for a client those of the system); a server then requires a certificate of its clients")
	f.StringVar(&e.name, "tls-name", "", "expect the certificate of the server to be for this `NAME` (default: the host that is connected to)")
	f.StringVar(&e.keyLog, "tls-keylog", "", "append the secrets of connections to `FILE`, for Wireshark; whoever has it can decrypt recordings")
}

// wanted reports whether connections are to be encrypted.
func (e *encryption) wanted() bool {
	return e.on || e.cert != "" || e.key != "" || e.ca != "" || e.name != "" || e.keyLog != ""
}

// open reads the files once. The logger reports changed ones that can't be used.
func (e *encryption) open(log *slog.Logger) error {
	if e.opened != nil || !e.wanted() {
		return nil
	}
	files, err := e.files()
	if err != nil {
		return err
	}
	e.authorityGiven, files.Logger = files.CA != "", log
	if e.opened, err = tlsid.Open(files); err != nil {
		return fmt.Errorf("--tls: %w", err)
	}
	return nil
}

// files returns the files that are used.
func (e *encryption) files() (tlsid.Files, error) {
	files := tlsid.Files{Cert: e.cert, Key: e.key, CA: e.ca, KeyLog: e.keyLog}
	if (e.cert == "") != (e.key == "") {
		return files, usagef("--tls-cert and --tls-key are needed together")
	}
	return files, standardFiles(&files, tlsDir())
}

// ofProgram returns what a program under weft run is told.
func (e *encryption) ofProgram() (t dropin.TLS, err error) {
	if err := e.open(nil); err != nil || e.opened == nil {
		return t, err
	}
	files, err := e.files()
	if err != nil {
		return t, err
	}
	t = dropin.TLS{On: true, Cert: files.Cert, Key: files.Key, CA: files.CA, Name: e.name, KeyLog: files.KeyLog}
	if t.Cert == "" {
		return t, usagef("--tls: a program may be connected to, and so needs a certificate: weft cert makes one, --tls-cert and --tls-key name another")
	}
	for _, name := range []*string{&t.Cert, &t.Key, &t.CA, &t.KeyLog} {
		if *name == "" {
			continue
		}
		if *name, err = filepath.Abs(*name); err != nil {
			return t, err
		}
	}
	return t, nil
}

// standardFiles takes what no flag names from the directory of weft cert.
func standardFiles(f *tlsid.Files, dir string) error {
	if dir == "" {
		return nil
	}
	for _, s := range []struct {
		name *string
		file string
	}{{&f.CA, caFile}, {&f.Cert, certFile}, {&f.Key, keyFile}} {
		if *s.name != "" {
			continue
		}
		switch _, err := os.Stat(filepath.Join(dir, s.file)); {
		case err == nil:
			*s.name = filepath.Join(dir, s.file)
		case !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("--tls: %w", err)
		}
	}
	return nil
}

// tlsTrouble explains an error of connecting that is about TLS; nil if it is not.
func tlsTrouble(at string, err error) error {
	var failed *cm.TLSError
	switch {
	case errors.Is(err, mpa.ErrTLS):
		return fmt.Errorf("cannot connect to %s: %w: try --tls", at, err)
	case errors.As(err, &failed):
		return fmt.Errorf("cannot connect to %s: %w", at, err)
	}
	return rpcTLSTrouble(at, err)
}

// rpcTLSTrouble is tlsTrouble for NFS over TCP.
func rpcTLSTrouble(at string, err error) error {
	var reject *oncrpc.RejectError
	switch {
	case errors.Is(err, rpctcp.ErrNoTLS):
		return fmt.Errorf("cannot connect to %s: the server does not offer TLS over TCP, and this side requires it with --tls", at)
	case errors.Is(err, rpctcp.ErrALPN):
		return fmt.Errorf("cannot connect to %s: TLS: the server has not chosen the protocol sunrpc (ALPN), as Linux's does not; --tls-any-alpn accepts that", at)
	case errors.As(err, &reject) && reject.Auth == oncrpc.AuthFailed && reject.Err != nil:
		return fmt.Errorf("cannot connect to %s: TLS: %w", at, reject.Err)
	}
	return nil
}

// checkNames fails if callers have names without certificates.
func (e *encryption) checkNames(names []origin.Name) error {
	switch {
	case len(names) == 0:
		return nil
	case e.opened == nil:
		return usagef("--allow %v: the name is in a certificate, which takes --tls", names[0])
	case !e.authorityGiven:
		return usagef("--allow %v: --tls-ca has to say which certificates are verified", names[0])
	}
	return nil
}

// registerAnyALPN adds the flag for servers that do not keep to RFC 9289 §5.
func registerAnyALPN(f *pflag.FlagSet, any *bool) {
	f.BoolVar(any, "tls-any-alpn", false, "over TCP, accept a server that does not choose the protocol sunrpc by ALPN, such as Linux's")
}

// client returns the configuration for a server; nil is plain. open comes before.
func (e *encryption) client(host string) *tls.Config {
	if e.opened == nil {
		return nil
	}
	if e.name != "" {
		host = e.name
	}
	return e.opened.Client(host)
}

// server returns the configuration of a server; nil is plain. It requires a certificate
// of clients if there is an authority to verify it with. open comes before.
func (e *encryption) server() (*tls.Config, error) {
	auth := tls.NoClientCert
	if e.authorityGiven {
		auth = tls.RequireAndVerifyClientCert
	}
	return e.serverAsking(auth)
}

// serverAsking is server with another demand on clients.
func (e *encryption) serverAsking(auth tls.ClientAuthType) (*tls.Config, error) {
	if e.opened == nil {
		return nil, nil
	}
	if e.name != "" {
		return nil, usagef("--tls-name is for a client: it says whom it expects")
	}
	cfg, err := e.opened.Server(auth)
	if err != nil {
		return nil, fmt.Errorf("--tls: %w; weft cert makes one for trying, --tls-cert and --tls-key name another", err)
	}
	return cfg, nil
}
