// Making certificates.

package tlsid

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// A Pair is a certificate with its private key, both PEM.
type Pair struct{ Cert, Key []byte }

// An Authority signs certificates.
type Authority struct {
	Pair
	cert *x509.Certificate
	key  any
}

// NewAuthority makes an authority of this name, with an ECDSA key on P-256, that is valid
// from a day ago, as clocks differ, until a time.
func NewAuthority(name string, until time.Time) (*Authority, error) {
	t := template(name, until)
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	p, err := sign(t, nil)
	if err != nil {
		return nil, err
	}
	return OpenAuthority(p)
}

// OpenAuthority returns the authority of a certificate and key.
func OpenAuthority(p Pair) (*Authority, error) {
	c, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return nil, err
	}
	if !c.Leaf.IsCA {
		return nil, errors.New("the certificate is not that of an authority")
	}
	return &Authority{Pair: p, cert: c.Leaf, key: c.PrivateKey}, nil
}

// Issue makes a certificate for a host, server and client alike, of these DNS names and
// IP addresses, at least one.
func (a *Authority) Issue(names []string, until time.Time) (Pair, error) {
	t, err := host(names, until)
	if err != nil {
		return Pair{}, err
	}
	if until.After(a.cert.NotAfter) {
		t.NotAfter = a.cert.NotAfter
	}
	return sign(t, a)
}

// SelfSigned makes a certificate like that of Issue, without an authority: peers trust it
// alone, by having it among their authorities.
func SelfSigned(names []string, until time.Time) (Pair, error) {
	t, err := host(names, until)
	if err != nil {
		return Pair{}, err
	}
	return sign(t, nil)
}

// host returns the template of the certificate of a host.
func host(names []string, until time.Time) (*x509.Certificate, error) {
	if len(names) == 0 {
		return nil, errors.New("a certificate needs a name or an address")
	}
	t := template(names[0], until)
	t.BasicConstraintsValid = true
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	for _, name := range names {
		if addr, err := netip.ParseAddr(name); err == nil {
			t.IPAddresses = append(t.IPAddresses, net.IP(addr.Unmap().WithZone("").AsSlice()))
			continue
		}
		if _, err := origin.ParseName("dns:" + name); err != nil {
			return nil, fmt.Errorf("%q is neither the name of a host nor an address", name)
		}
		t.DNSNames = append(t.DNSNames, strings.TrimSuffix(name, "."))
	}
	return t, nil
}

func template(name string, until time.Time) *x509.Certificate {
	return &x509.Certificate{
		Subject:   pkix.Name{CommonName: name},
		NotBefore: time.Now().AddDate(0, 0, -1), NotAfter: until,
	}
}

// sign makes a key, and a certificate that the authority signs, or for nil that key.
func sign(t *x509.Certificate, by *Authority) (p Pair, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return p, err
	}
	parent, signer := t, any(key)
	if by != nil {
		parent, signer = by.cert, by.key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, &key.PublicKey, signer)
	if err != nil {
		return p, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return p, err
	}
	p.Cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	p.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return p, nil
}
