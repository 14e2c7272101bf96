package fileserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

// A deaf peer's connections read nothing any more once it is told so.
type deaf struct {
	now  atomic.Bool
	over chan struct{}
}

type deafConn struct {
	net.Conn
	*deaf
}

func (d *deaf) wrap(nc net.Conn) net.Conn { return &deafConn{nc, d} }

func (c *deafConn) Read(p []byte) (int, error) {
	if c.now.Load() {
		<-c.over
		return 0, net.ErrClosed
	}
	return c.Conn.Read(p)
}

// callers are clients of each kind, which d makes deaf.
func (d *deaf) callers(t *testing.T, s *Server, security, below *tls.Config) map[string]oncrpc.Caller {
	t.Helper()
	tcp := rpctcp.ClientConfig{Address: s.TCP().String(), Attempts: 1, Wrap: d.wrap}
	rdma := rpcrdma.ClientConfig{Address: s.RDMA().String(), Attempts: 1, Bindings: binding.NFS(), Connection: cm.Params{Wrap: d.wrap, TLS: below}}
	overTLS := tcp
	overTLS.TLS = security
	all := make(map[string]oncrpc.Caller)
	for what, cfg := range map[string]rpctcp.ClientConfig{"TCP": tcp, "TCP with TLS": overTLS} {
		c, err := rpctcp.NewClient(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		all[what] = c
	}
	c, err := rpcrdma.NewClient(rdma)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	all["RDMA"] = c
	return all
}

// Clients ask for much and read none of it. The limit of a drain is hard all the same, for
// them and with them for everybody: no alert of TLS and no end of a stream is waited for.
func TestClientsThatDoNotReadHoldUpNoDrain(t *testing.T) {
	const calls, octets = 16, 1 << 20 // more than the buffers of a socket
	server, security := pair(t)
	for _, encrypted := range []bool{false, true} {
		x := exporting(t, "/x", nil)
		if err := os.Truncate(filepath.Join(x.Files.Root, "file"), octets); err != nil {
			t.Fatal(err)
		}
		var begun atomic.Int32 // calls that are being executed, or whose replies nobody takes
		cfg := Config{
			RDMA: "127.0.0.1:0", TCP: "127.0.0.1:0", PortMap: PortMapOff, StartTLS: server, Exports: []Export{x}, AllowOthers: true,
			Logger: slog.New(slog.DiscardHandler), Notice: func(string) {},
			Observe: func(h oncrpc.Handler) oncrpc.Handler {
				return oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
					if r.Prog == nfs.Program && r.Proc == uint32(nfs.ProcRead) {
						begun.Add(1)
					}
					return h.ServeRPC(ctx, r)
				})
			},
		}
		d := &deaf{over: make(chan struct{})}
		var below *tls.Config
		if encrypted {
			cfg.TLS, below = server, security
		}
		s, err := Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		var asking sync.WaitGroup
		callers := d.callers(t, s, security, below)
		files := make(map[string]*client.File)
		for what, c := range callers {
			f, err := dial(t, c, "/x").Open(t.Context(), "file")
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			files[what] = f
		}
		d.now.Store(true)
		for what, f := range files {
			for range calls {
				asking.Go(func() {
					if n, err := f.ReadAt(t.Context(), make([]byte, octets), 0); err == nil {
						t.Errorf("%s: a client that does not read has read %d octets", what, n)
					}
				})
			}
		}
		nettest.Until(t, func() bool { return int(begun.Load()) == len(callers)*calls })
		limit, cut := context.WithCancel(t.Context())
		end := make(chan error, 1)
		tcp := s.TCP()
		go func() { end <- s.Shutdown(limit) }()
		refused(t, tcp)
		// What refused connected has ended.
		nettest.Until(t, func() bool { return len(s.Connections()) == len(callers) })
		cut()
		began := time.Now()
		err = nettest.Await(t, end)
		var was *CutError
		if !errors.As(err, &was) || was.Connections != len(callers) {
			t.Errorf("Shutdown: %v, want %d connections", err, len(callers))
		}
		if took := time.Since(began); took > 4*time.Second { // less than what the end of a stream may take without a limit
			t.Errorf("after the limit, Shutdown took %v", took)
		}
		close(d.over)
		asking.Wait()
	}
}
