// The files of an Identity, which are read again when they change.
//
//  1. A handshake asks for the material of the moment (now).
//  2. If a second has passed since the files were looked at, each is looked at (stat).
//  3. If one has changed, all are read. If they can't be used together, the previous
//     material stays, and they are read again a second later: they may be half replaced.
//
// Locking: reloader.mu is held while files are read, so that other handshakes wait for
// the result. What now returns is never changed.

package tlsid

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"sync"
	"time"
)

// lookAgain is how long files are not looked at after they were.
const lookAgain = time.Second

// A material is what is in the files.
type material struct {
	cert  *tls.Certificate // nil is none
	roots *x509.CertPool   // nil is the system's
}

// A reloader has the material of files.
type reloader struct {
	files Files

	mu      sync.Mutex
	current *material
	seen    []os.FileInfo // of the files of current
	looked  time.Time
	failed  string // the error that was reported last
}

func newReloader(f Files) (*reloader, error) {
	r := &reloader{files: f, looked: time.Now()}
	var err error
	if r.seen, err = r.look(); err != nil {
		return nil, err
	}
	r.current, err = f.read()
	return r, err
}

// now returns the material of the moment.
func (r *reloader) now() *material {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.looked) >= lookAgain {
		r.looked = now
		r.refresh()
	}
	return r.current
}

// refresh reads the files if they have changed.
func (r *reloader) refresh() {
	seen, err := r.look() // before reading: a change meanwhile is seen the next time
	if err == nil {
		if same(seen, r.seen) {
			return
		}
		var m *material
		if m, err = r.files.read(); err == nil {
			r.current, r.seen, r.failed = m, seen, ""
			return
		}
	}
	if log := r.files.Logger; log != nil && err.Error() != r.failed {
		log.Warn("changed certificate files can't be used, and the previous ones stay in use", "err", err)
	}
	r.failed = err.Error()
}

// look returns what the file system says of the files.
func (r *reloader) look() (all []os.FileInfo, err error) {
	for _, name := range []string{r.files.Cert, r.files.Key, r.files.CA} {
		if name == "" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		all = append(all, info)
	}
	return all, nil
}

func same(a, b []os.FileInfo) bool {
	for i, x := range a {
		if y := b[i]; !os.SameFile(x, y) || x.Size() != y.Size() || !x.ModTime().Equal(y.ModTime()) {
			return false
		}
	}
	return true
}

// read reads the files.
func (f *Files) read() (*material, error) {
	m := new(material)
	if f.Cert != "" {
		c, err := tls.LoadX509KeyPair(f.Cert, f.Key)
		if err != nil {
			return nil, fmt.Errorf("certificate %s with key %s: %w", f.Cert, f.Key, err)
		}
		m.cert = &c
	}
	if f.CA != "" {
		text, err := os.ReadFile(f.CA)
		if err != nil {
			return nil, err
		}
		if m.roots, err = parseCertificates(text); err != nil {
			return nil, fmt.Errorf("authorities %s: %w", f.CA, err)
		}
	}
	return m, nil
}

// parseCertificates returns the certificates of a PEM file, at least one. A block that
// is no certificate, or a damaged one, is an error.
func parseCertificates(text []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("found a PEM block of type %s, expected CERTIFICATE only", block.Type)
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, err
		}
		pool.AddCert(c)
		text, n = rest, n+1
	}
	if n == 0 {
		return nil, fmt.Errorf("no certificate in PEM format")
	}
	return pool, nil
}
