// This file is weft cert.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/origin"
)

// authorityYears is how long an authority of weft cert is valid.
const authorityYears = 10

// cert holds the flags of `weft cert`.
type cert struct {
	out   string
	days  int
	force bool

	cmd *cobra.Command
}

func newCert() *cobra.Command {
	c := &cert{}
	cmd := &cobra.Command{
		Use:   "cert [NAME...] [flags]",
		Short: "Make certificates for --tls",
		Long: `Cert makes a certificate for this host, and an authority that signs it, for trying
--tls and for small installations. The certificate is for the NAMES, which are names
of hosts and IP addresses; without any, for all names and addresses of this host.

Commands with --tls find the files where cert puts them by default: in the directory
tls of the user's state (weft cert --help shows it below, as the default of --out).
The authority is made once and kept there: ca.pem is its certificate and ca.key its
private key.

With --out, cert makes the files for another host, signed by the same authority: copy
that directory to the host, or name the files with --tls-cert, --tls-key and --tls-ca.

  ca.pem    what to trust: the certificate of the authority
  cert.pem  the certificate of the host
  key.pem   its private key: a secret of the host

A command that runs reads the files again when they change. Private keys are ECDSA on
P-256, and only the user can read the files. Cert replaces files only with --force,
and the authority never.`,
		Example: `  weft cert                                    for this host
  weft serve . --tls                           encrypted, for clients with certificates
  weft ls --tls nfs://localhost/               from this host
  weft cert --out laptop laptop.example.org    for another host
  weft cert pair alpha.example beta.example    for two hosts that trust only each other`,
		RunE: func(cmd *cobra.Command, names []string) error {
			c.cmd = cmd
			return c.host(names)
		},
	}
	c.register(cmd, tlsDir())
	cmd.AddCommand(newCertPair())
	return cmd
}

func newCertPair() *cobra.Command {
	c := &cert{}
	cmd := &cobra.Command{
		Use:   "pair HOST1 HOST2 [flags]",
		Short: "Make certificates for two hosts that trust only each other",
		Long: `Pair makes two certificates that pin each other: each of the two hosts trusts the
certificate of the other one and no other, and there is no authority. It makes a
directory for each host, of the host's name. Copy it to the host, where commands find
it as the directory tls of the user's state, or name its files with --tls-cert,
--tls-key and --tls-ca.

  cert.pem  the certificate of the host
  key.pem   its private key: a secret of the host
  ca.pem    what the host trusts: the certificate of the other one`,
		Example: `  weft cert pair alpha.example 192.0.2.7
  weft ping -s --tls-cert alpha.example/cert.pem --tls-key alpha.example/key.pem --tls-ca alpha.example/ca.pem`,
		Args: arguments(2, 2, "the names or addresses of two hosts"),
		RunE: func(cmd *cobra.Command, hosts []string) error {
			c.cmd = cmd
			return c.pair(hosts[0], hosts[1])
		},
	}
	c.register(cmd, ".")
	return cmd
}

func (c *cert) register(cmd *cobra.Command, out string) {
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVarP(&c.out, "out", "o", out, "put the files into `DIR`")
	f.IntVar(&c.days, "days", 365, "make certificates that are valid for `N` days")
	f.BoolVar(&c.force, "force", false, "replace certificates and keys that are there")
}

// until returns when certificates end.
func (c *cert) until() (time.Time, error) {
	if c.days < 1 || c.days > 36500 {
		return time.Time{}, usagef("--days %d: expected 1 to 36500", c.days)
	}
	return time.Now().AddDate(0, 0, c.days), nil
}

// host makes the certificate of a host, and the authority if there is none.
func (c *cert) host(names []string) error {
	until, err := c.until()
	if err != nil {
		return err
	}
	home := tlsDir()
	if home == "" || c.out == "" {
		return errors.New("this user has no directory for state")
	}
	if len(names) == 0 {
		if !sameDir(c.out, home) {
			return usagef("missing names: for whom is the certificate in %s?", c.out)
		}
		names = hostNames()
	}
	if !c.force {
		if err := vacant(c.out, certFile, keyFile); err != nil {
			return err
		}
	}
	a, err := c.authority(home)
	if err != nil {
		return err
	}
	p, err := a.Issue(names, until)
	if err != nil {
		return err
	}
	if err := c.write(c.out, p, a.Cert); err != nil {
		return err
	}
	fmt.Fprintf(c.cmd.OutOrStdout(), "%s: a certificate for %s, until %s\n", filepath.Join(c.out, certFile), strings.Join(names, ", "), until.Format(time.DateOnly))
	return nil
}

// authority returns the authority of a directory, and makes it if there is none.
func (c *cert) authority(dir string) (*tlsid.Authority, error) {
	var p tlsid.Pair
	var err error
	if p.Key, err = os.ReadFile(filepath.Join(dir, authorityFile)); err == nil {
		if p.Cert, err = os.ReadFile(filepath.Join(dir, caFile)); err != nil {
			return nil, err
		}
		a, err := tlsid.OpenAuthority(p)
		if err != nil {
			return nil, fmt.Errorf("the authority in %s: %w", dir, err)
		}
		return a, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	// What is trusted here may come from elsewhere: of another host, or of a pair.
	if err := vacant(dir, caFile); err != nil {
		return nil, fmt.Errorf("there is no authority in %s to sign with: %w", dir, err)
	}
	name := "Weft authority"
	if host, err := os.Hostname(); err == nil {
		name += " of " + host
	}
	a, err := tlsid.NewAuthority(name, time.Now().AddDate(authorityYears, 0, 0))
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := create(filepath.Join(dir, authorityFile), a.Key, false); err != nil {
		return nil, err
	}
	return a, create(filepath.Join(dir, caFile), a.Cert, false)
}

// pair makes the certificates of two hosts that pin each other.
func (c *cert) pair(hosts ...string) error {
	until, err := c.until()
	if err != nil {
		return err
	}
	if hosts[0] == hosts[1] {
		return usagef("expected two hosts: %s is given twice", hosts[0])
	}
	var pairs [2]tlsid.Pair
	for i, host := range hosts {
		if pairs[i], err = tlsid.SelfSigned([]string{host}, until); err != nil {
			return usagef("%v", err)
		}
		if !c.force {
			if err := vacant(c.dir(host), certFile, keyFile, caFile); err != nil {
				return err
			}
		}
	}
	for i, host := range hosts {
		if err := c.write(c.dir(host), pairs[i], pairs[1-i].Cert); err != nil {
			return err
		}
		fmt.Fprintf(c.cmd.OutOrStdout(), "%s: the certificate of %s, which trusts only %s, until %s\n", c.dir(host), host, hosts[1-i], until.Format(time.DateOnly))
	}
	return nil
}

// dir returns the directory of a host. A colon of an IPv6 address is no part of a file's
// name on every system.
func (c *cert) dir(host string) string {
	return filepath.Join(c.out, strings.NewReplacer(":", "_", "*", "_").Replace(host))
}

// write writes the files of a host.
func (c *cert) write(dir string, p tlsid.Pair, ca []byte) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{caFile, ca}, {keyFile, p.Key}, {certFile, p.Cert}} {
		name := filepath.Join(dir, f.name)
		if f.name == caFile {
			if old, err := os.ReadFile(name); err == nil && string(old) == string(f.text) {
				continue
			}
		}
		if err := create(name, f.text, c.force); err != nil {
			return err
		}
	}
	return nil
}

// vacant fails if one of the files is there.
func vacant(dir string, names ...string) error {
	for _, name := range names {
		name = filepath.Join(dir, name)
		if _, err := os.Lstat(name); err == nil {
			return fmt.Errorf("%s exists: --force replaces it", name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// create writes a file that only this user can read. With replace it takes the place of
// another one at once.
func create(name string, text []byte, replace bool) error {
	at := name
	if replace {
		at = name + ".new"
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil && replace {
		err = os.Rename(at, name)
	}
	if err != nil {
		_ = os.Remove(at) // it is of no use
	}
	return err
}

// sameDir reports whether two paths lead to the same place.
func sameDir(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

// hostNames returns the names and addresses of this host.
func hostNames() (names []string) {
	if host, err := os.Hostname(); err == nil {
		if _, err := origin.ParseName("dns:" + host); err == nil {
			names = append(names, host)
		}
	}
	names = append(names, "localhost")
	all, _ := net.InterfaceAddrs() // the names are good without
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLinkLocalUnicast() {
			names = append(names, n.IP.String())
		}
	}
	slices.Sort(names[min(len(names), 2):])
	return slices.Compact(names)
}
