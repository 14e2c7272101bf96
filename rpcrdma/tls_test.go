package rpcrdma

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"sync"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/internal/tlsid"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
	"github.com/weft-rdma/weft/verbs"
)

// A client replaces connections whose TLS keys near their limit, and loses no call over it:
// none is made twice.
func TestConnectionsWithWornKeysAreReplacedUnnoticed(t *testing.T) {
	nettest.CheckLeaks(t)
	pair := must(tlsid.SelfSigned([]string{"127.0.0.1"}, time.Now().Add(time.Hour)))(t)
	cert := must(tls.X509KeyPair(pair.Cert, pair.Key))(t)
	roots := x509.NewCertPool()
	roots.AddCert(cert.Leaf)

	rnic := must(verbs.Open(verbs.Config{}))(t)
	defer rnic.Close()
	ln := must(cm.Listen(t.Context(), rnic, "tcp", "127.0.0.1:0", cm.ListenConfig{TLS: &tls.Config{Certificates: []tls.Certificate{cert}}}))(t)
	server := must(NewServer(rnic, ServerConfig{Handler: oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Origin.Security() != origin.TLS {
			t.Errorf("the security of a call is %v", r.Origin.Security())
		}
		return serveNull(ctx, r)
	})}))(t)
	served := make(chan error, 1)
	go func() { served <- server.Serve(t.Context(), ln) }()

	c := must(NewClient(ClientConfig{Address: ln.Addr().String(), Connection: cm.Params{TLS: &tls.Config{RootCAs: roots}, KeyRecords: 100}}))(t)
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 200 {
				reply, err := c.Call(t.Context(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: 400000, Vers: 1}})
				if err != nil {
					t.Error(err)
					return
				}
				reply.Release()
			}
		})
	}
	nettest.AwaitGroup(t, &callers)
	if s := c.Stats(); s.Connections < 3 || s.Repeated != 0 || s.Replies != 800 {
		t.Errorf("%+v", s)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	nettest.Await(t, served)
}
