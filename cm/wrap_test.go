package cm_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/verbs"
)

// RDMA over TLS: Wrap is all it takes.
//
// Claims: V-10.1.1-2 V-10.2-2
// Claims: R-8.2.1-1
func TestWrapPutsTLSUnderneath(t *testing.T) {
	nettest.CheckLeaks(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"weft.test"}, NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	var wrapped atomic.Int32
	server := func(nc net.Conn) net.Conn {
		wrapped.Add(1)
		return tls.Server(nc, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	}
	client := func(nc net.Conn) net.Conn {
		wrapped.Add(1)
		return tls.Client(nc, &tls.Config{RootCAs: roots, ServerName: "weft.test"})
	}
	a, b := newEnd(t, verbs.QPConfig{}), newEnd(t, verbs.QPConfig{})
	ln := listen(t, b, "tcp4", cm.ListenConfig{Wrap: server})
	done := accepted(t.Context(), ln, func(r *cm.Request) error {
		_, err := r.Accept(t.Context(), b.qp, cm.Params{})
		return err
	})
	c, err := cm.Dial(t.Context(), a.qp, "tcp", ln.Addr().String(), cm.Params{Wrap: client})
	if err := errors.Join(err, nettest.Await(t, done)); err != nil {
		t.Fatal(err)
	}
	copy(b.buf[5000:], "octets that nobody else has seen")
	for id, op := range []verbs.Op{verbs.OpRead, verbs.OpWrite} {
		wr := verbs.SendWR{ID: uint64(id), Op: op, Flags: verbs.Signaled, SGL: []verbs.SGE{a.mr.SGE(5000, 300000)}, Remote: b.mr.Remote(5000)}
		if err := a.qp.PostSend(wr); err != nil {
			t.Fatal(err)
		}
		if wc := a.next(t); wc.Status != verbs.Success {
			t.Fatalf("%v: %v, %v, %v", op, wc.Status, a.qp.Err(), b.qp.Err())
		}
	}
	if got := string(a.buf[5000:5032]); got != "octets that nobody else has seen" || wrapped.Load() != 2 {
		t.Errorf("read %q; %d connections were wrapped", got, wrapped.Load())
	}
	if err := c.Shutdown(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	if s, err := b.qp.WaitState(t.Context(), verbs.Idle, verbs.Error); err != nil || s != verbs.Idle {
		t.Errorf("the other side is %v, %v", s, b.qp.Err())
	}
}
