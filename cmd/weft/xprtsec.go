// This file holds --xprtsec, and TLS of file servers.

package main

import (
	"crypto/tls"

	"github.com/spf13/pflag"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/origin"
)

// xprtsec is the value of --xprtsec.
type xprtsec string

func (x *xprtsec) register(f *pflag.FlagSet) {
	f.StringVar((*string)(x), "xprtsec", "", "accept NFS with this transport layer security: a `LIST` of none, tls and mtls with colons (default: with TLS mtls if there is an authority, else tls:mtls; without TLS none)")
}

// set returns the securities of the flag, or the default.
func (x xprtsec) set(e *encryption) (mount.XprtSec, error) {
	encrypted := mount.XprtSecOf(origin.TLS, origin.MutualTLS)
	switch {
	case x == "" && e.authorityGiven:
		return mount.XprtSecOf(origin.MutualTLS), nil
	case x == "":
		return encrypted, nil
	}
	set, err := mount.ParseXprtSec(string(x))
	if err != nil {
		return 0, usagef("--xprtsec: %v", err)
	}
	if set == mount.XprtSecOf(origin.MutualTLS) && !e.authorityGiven {
		return 0, usagef("--xprtsec mtls: name the authority of the clients' certificates with --tls-ca")
	}
	if set == mount.XprtSecOf(origin.Plain) {
		return 0, usagef("--xprtsec none: leave out --tls")
	}
	return set, nil
}

// secure gives a file server TLS, over RDMA for all connections and over TCP for those that
// ask for it (RFC 9289), if there is TLS. open comes before.
func (e *encryption) secure(cfg *fileserver.Config, x xprtsec) (err error) {
	if e.opened == nil {
		if x != "" && x != "none" {
			return usagef("--xprtsec %s: it takes --tls", x)
		}
		return nil
	}
	if cfg.XprtSec, err = x.set(e); err != nil {
		return err
	}
	return e.demand(cfg)
}

// demand gives a file server TLS, if there is TLS, and asks clients for certificates as
// cfg.XprtSec needs them.
func (e *encryption) demand(cfg *fileserver.Config) (err error) {
	if e.opened == nil {
		return nil
	}
	auth := tls.NoClientCert
	switch {
	case cfg.XprtSec == mount.XprtSecOf(origin.MutualTLS):
		auth = tls.RequireAndVerifyClientCert
	case e.authorityGiven:
		auth = tls.VerifyClientCertIfGiven
	}
	cfg.TLS, err = e.serverAsking(auth)
	cfg.StartTLS = cfg.TLS
	return err
}
