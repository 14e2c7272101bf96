package gateway

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/weft-rdma/weft/cm"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
	"github.com/weft-rdma/weft/verbs"
)

// A transport is what one side of a gateway uses.
type transport struct {
	name    string
	serve   func(t *testing.T, rnic *verbs.RNIC, address string, h oncrpc.Handler) (at string, stop func())
	call    func(t *testing.T, rnic *verbs.RNIC, address string, reverse oncrpc.Handler) oncrpc.Caller
	backend func(rnic *verbs.RNIC, address string) Backend
}

var transports = []transport{
	{
		name: "tcp",
		serve: func(t *testing.T, _ *verbs.RNIC, address string, h oncrpc.Handler) (string, func()) {
			s, err := rpctcp.NewServer(rpctcp.ServerConfig{Handler: h})
			if err != nil {
				t.Fatal(err)
			}
			ln, err := net.Listen("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Serve(context.Background(), ln)
			}()
			return ln.Addr().String(), func() {
				s.Close()
				<-done
			}
		},
		call: func(t *testing.T, _ *verbs.RNIC, address string, reverse oncrpc.Handler) oncrpc.Caller {
			c, err := rpctcp.NewClient(rpctcp.ClientConfig{Address: address, Reverse: reverse})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		backend: func(_ *verbs.RNIC, address string) Backend { return TCP(TCPConfig{Address: address}) },
	},
	{
		name: "rdma",
		serve: func(t *testing.T, rnic *verbs.RNIC, address string, h oncrpc.Handler) (string, func()) {
			s, err := rpcrdma.NewServer(rnic, rpcrdma.ServerConfig{Handler: h, Bindings: binding.NFS(), ReverseCalls: 2})
			if err != nil {
				t.Fatal(err)
			}
			ln, err := cm.Listen(t.Context(), rnic, "tcp", address, cm.ListenConfig{})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				s.Serve(context.Background(), ln)
			}()
			return ln.Addr().String(), func() {
				ln.Close()
				if err := s.Close(); err != nil {
					t.Errorf("closing a server: %v", err)
				}
				<-done
			}
		},
		call: func(t *testing.T, rnic *verbs.RNIC, address string, reverse oncrpc.Handler) oncrpc.Caller {
			c, err := rpcrdma.NewClient(rpcrdma.ClientConfig{Address: address, RNIC: rnic, Bindings: binding.NFS(), Reverse: reverse})
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		backend: func(rnic *verbs.RNIC, address string) Backend {
			return RDMA(RDMAConfig{Address: address, RNIC: rnic})
		},
	},
}

// A line is a client, a gateway and a server in a row.
type line struct {
	front, back transport
	rnic        *verbs.RNIC
	behind      string // address of the server
	stopServer  func()
	server      oncrpc.Handler
	caller      oncrpc.Caller // of the client
	gateway     *Gateway
}

// overLines runs a test with each combination of transports.
func overLines(t *testing.T, server func(t *testing.T) oncrpc.Handler, reverse oncrpc.Handler, test func(t *testing.T, l *line)) {
	for _, front := range transports {
		for _, back := range transports {
			t.Run(fmt.Sprintf("%s to %s", front.name, back.name), func(t *testing.T) {
				nettest.CheckLeaks(t)
				rnic, err := verbs.Open(verbs.Config{})
				if err != nil {
					t.Fatal(err)
				}
				l := &line{front: front, back: back, rnic: rnic, server: server(t)}
				l.behind, l.stopServer = back.serve(t, rnic, "127.0.0.1:0", l.server)
				g, err := New(Config{Backend: back.backend(rnic, l.behind), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
				if err != nil {
					t.Fatal(err)
				}
				l.gateway = g
				address, stopFront := front.serve(t, rnic, "127.0.0.1:0", g)
				l.caller = front.call(t, rnic, address, reverse)

				test(t, l)

				l.caller.Close()
				stopFront()
				if n := len(g.sessions); n > 0 {
					t.Errorf("%d sessions are left without a connection", n)
				}
				g.Close()
				l.stopServer()
				if u := rnic.Usage(); u != (verbs.Usage{}) {
					t.Errorf("of the RNIC there is left %+v", u)
				}
				rnic.Close()
			})
		}
	}
}

// restart replaces the server by another one at the same address.
func (l *line) restart(t *testing.T) {
	t.Helper()
	l.stopServer()
	_, l.stopServer = l.back.serve(t, l.rnic, l.behind, l.server)
}

// folderServer serves an empty directory.
func folderServer(t *testing.T) *folder.Server {
	s, err := folder.New(folder.Config{Root: t.TempDir(), SingleUser: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (l *line) mount(t *testing.T) *client.FS {
	t.Helper()
	root, err := l.server.(*folder.Server).Handle(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	fs, err := client.Dial(t.Context(), client.Config{NFS: l.caller, Root: root})
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func random(seed uint64, n int) []byte {
	b := make([]byte, n)
	for r, i := rand.New(rand.NewPCG(seed, 1)), 0; i < n; i++ {
		b[i] = byte(r.Uint32())
	}
	return b
}

// Files are the same through a gateway, whatever transports it connects.
func TestFilesPassAGateway(t *testing.T) {
	overLines(t, func(t *testing.T) oncrpc.Handler { return folderServer(t) }, nil, func(t *testing.T, l *line) {
		ctx := t.Context()
		fs := l.mount(t)
		for i, size := range []int{0, 1, 1000, 4097, 1 << 20, 3<<20 + 5} {
			name := fmt.Sprintf("/%d", size)
			data := random(uint64(i), size)
			f, err := fs.Create(ctx, name, nfs.Guarded, client.Mode(0o600))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteAt(ctx, data, 0); err != nil {
				t.Fatal(err)
			}
			got := make([]byte, size)
			if n, err := f.ReadAt(ctx, got, 0); n != size || !bytes.Equal(got, data) {
				t.Errorf("%s: %d octets and %v, or other ones", name, n, err)
			}
		}
		target := strings.Repeat("far/", 1000)
		if _, err := fs.Symlink(ctx, target, "/link"); err != nil {
			t.Fatal(err)
		}
		if got, err := fs.Readlink(ctx, "/link"); got != target {
			t.Errorf("link of %d octets and %v, want %d", len(got), err, len(target))
		}
		for i := range 150 {
			if _, err := fs.Mkdir(ctx, fmt.Sprintf("/directory with a rather long name %03d", i), client.Mode(0o700)); err != nil {
				t.Fatal(err)
			}
		}
		list, err := fs.ReadDir(ctx, "/")
		if err != nil || len(list) != 6+1+150 {
			t.Errorf("%d entries and %v, want %d", len(list), err, 6+1+150)
		}
		if err := fs.Rename(ctx, "/1", "/one"); err != nil {
			t.Error(err)
		}
		if err := fs.Remove(ctx, "/1"); err == nil {
			t.Error("a file is removed that has another name")
		}
	})
}

// A transfer continues after the server has been restarted in its middle.
func TestATransferSurvivesARestartBehind(t *testing.T) {
	overLines(t, func(t *testing.T) oncrpc.Handler { return folderServer(t) }, nil, func(t *testing.T, l *line) {
		ctx := t.Context()
		fs := l.mount(t)
		f, err := fs.Create(ctx, "/file", nfs.Guarded, client.Mode(0o600))
		if err != nil {
			t.Fatal(err)
		}
		data := random(1, 8<<20)
		half := len(data) / 2
		if _, err := f.WriteAt(ctx, data[:half], 0); err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			_, err := f.WriteAt(ctx, data[half:], int64(half))
			done <- err
		}()
		l.restart(t)
		if err := nettest.Await(t, done); err != nil {
			t.Fatalf("writing on: %v", err)
		}
		l.restart(t)
		got := make([]byte, len(data))
		if n, err := f.ReadAt(ctx, got, 0); n != len(data) || !bytes.Equal(got, data) {
			t.Errorf("%d octets and %v, or other ones", n, err)
		}
	})
}

// compound4 is a server of NFS version 4 that knows two COMPOUNDs: one with two READs and one
// with a WRITE. The data of READ depend on the count.
var compound4 = oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
	d := oncrpc.NewDecoder(r.Args, "COMPOUND")
	d.Opaque(100)
	d.Uint32()
	e := r.Accept(4 << 20)
	n := d.Uint32()
	e.Uint32(0)
	e.Opaque(nil, 0)
	e.Uint32(n)
	for range n {
		op := d.Uint32()
		e.Uint32(op)
		e.Uint32(0)
		switch op {
		case 22: // PUTFH
			d.Opaque(128)
		case 25: // READ
			d.Fixed(24)
			count := d.Uint32()
			e.Bool(true)
			e.Opaque(random(uint64(count), int(count)), count)
		case 38: // WRITE
			d.Fixed(28)
			data := d.Opaque(4 << 20)
			e.Uint32(uint32(len(data)))
			e.Uint32(2)
			e.Uint64(sum(data))
		case 9: // GETATTR
			d.Uint32()
			e.Uint32(0)
			e.Opaque([]byte("attributes"), 100)
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	return e.Finish()
})

func sum(b []byte) (n uint64) {
	for _, x := range b {
		n = n*31 + uint64(x)
	}
	return n
}

// COMPOUNDs of NFS version 4 pass with their data, which are in the middle of the message. A
// client over RDMA does not accept data inline if it has offered a Write chunk.
//
// Claims: P8267-6.4.1-2
func TestCompoundsPassAGateway(t *testing.T) {
	overLines(t, func(*testing.T) oncrpc.Handler { return compound4 }, nil, func(t *testing.T, l *line) {
		v4 := oncrpc.Call{Prog: nfs.Program, Vers: nfs.V4, Proc: 1}
		exchange := func(what string, c *oncrpc.ClientCall, want []byte) {
			t.Helper()
			reply, err := l.caller.Call(t.Context(), c)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			defer reply.Release()
			p := placement{sinks: c.Sinks, at: make([]int, len(c.Sinks))}
			got := p.assemble(&oncrpc.Request{}, reply)[len(reply.Message)-len(reply.Results):]
			if !bytes.Equal(got, want) {
				t.Errorf("%s: results of %d octets, want %d, or other ones", what, len(got), len(want))
			}
		}
		opaque := func(data []byte) []byte {
			b := append(words(uint32(len(data))), data...)
			return append(b, make([]byte, oncrpc.Padding(len(data)))...)
		}
		for _, size := range []int{0, 3, 2000, 100_001, 1 << 20} {
			read := append(words(25, 0, 0, 0, 0, 0, 0), words(uint32(size))...)
			args := append(words(0, 1, 4, 22, 4, 1), read...)
			args = append(append(append(args, words(9, 0)...), words(25, 0, 0, 0, 0, 0, 0)...), words(777)...)
			want := append(words(0, 0, 4, 22, 0, 25, 0, 1), opaque(random(uint64(size), size))...)
			want = append(append(want, words(9, 0, 0)...), opaque([]byte("attributes"))...)
			want = append(append(want, words(25, 0, 1)...), opaque(random(777, 777))...)
			exchange(fmt.Sprintf("READ of %d and of 777 octets", size), &oncrpc.ClientCall{
				Call: v4, Args: [][]byte{args}, Sinks: [][]byte{make([]byte, size), make([]byte, 777)},
			}, want)

			data := random(uint64(size), size)
			args = append(words(0, 1, 3, 22, 4, 1, 38, 0, 0, 0, 0, 0, 0, 2), opaque(data)...)
			args = append(args, words(9, 0)...)
			want = append(words(0, 0, 3, 22, 0, 38, 0, uint32(size), 2, uint32(sum(data)>>32), uint32(sum(data))), words(9, 0, 0)...)
			want = append(want, opaque([]byte("attributes"))...)
			exchange(fmt.Sprintf("WRITE of %d octets", size), &oncrpc.ClientCall{Call: v4, Args: [][]byte{args}}, want)
		}
	})
}

// A server of NFS version 4.1 calls its client back through the gateway, during a call of the
// client and after it.
//
// Claims: P8267-6.5.2-1
func TestCallbacksPassAGateway(t *testing.T) {
	callback := oncrpc.Call{Prog: 0x40000000, Vers: 1, Proc: 1}
	callBack := func(t *testing.T, back oncrpc.Caller) {
		reply, err := back.Call(t.Context(), &oncrpc.ClientCall{Call: callback, Args: [][]byte{words(1, 2, 3)}})
		if err != nil {
			t.Errorf("calling back: %v", err)
			return
		}
		defer reply.Release()
		if !bytes.Equal(reply.Results, words(3, 2, 1)) {
			t.Errorf("the client answers %x", reply.Results)
		}
	}
	backs := make(chan oncrpc.Caller, 1)
	server := func(t *testing.T) oncrpc.Handler {
		return oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
			callBack(t, r.Back)
			backs <- r.Back
			e := r.Accept(0)
			return e.Finish()
		})
	}
	reverse := oncrpc.HandlerFunc(func(_ context.Context, r *oncrpc.Request) ([]byte, error) {
		if r.Prog != callback.Prog || !bytes.Equal(r.Args, words(1, 2, 3)) {
			return nil, &oncrpc.AcceptError{Stat: oncrpc.ProgUnavail}
		}
		e := r.Accept(12)
		for n := range uint32(3) {
			e.Uint32(3 - n)
		}
		return e.Finish()
	})
	overLines(t, server, reverse, func(t *testing.T, l *line) {
		if _, err := l.caller.Call(t.Context(), &oncrpc.ClientCall{Call: oncrpc.Call{Prog: nfs.Program, Vers: nfs.V4, Proc: 0}}); err != nil {
			t.Fatal(err)
		}
		callBack(t, nettest.Await(t, backs))
	})
}
