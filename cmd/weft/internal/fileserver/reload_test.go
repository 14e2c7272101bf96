package fileserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
)

// dial mounts an export with a client, which it closes with the test.
func dial(t *testing.T, over oncrpc.Caller, export string) *client.FS {
	t.Helper()
	fsys, err := client.Dial(t.Context(), client.Config{NFS: over, Export: export, Requests: 4})
	if err != nil {
		t.Fatalf("%s: %v", export, err)
	}
	t.Cleanup(func() { fsys.Close() })
	return fsys
}

// rewrite writes a file of an export and reads it again, with other data each time.
func rewrite(ctx context.Context, fsys *client.FS, name string, round int) error {
	f, err := fsys.Create(ctx, name, nfs.Unchecked, client.Mode(0o600))
	if err != nil {
		return err
	}
	data := bytes.Repeat([]byte(fmt.Sprintf("%8d", round)), 100<<10/8)
	if _, err := f.WriteAt(ctx, data, 0); err != nil {
		return err
	}
	got := make([]byte, len(data))
	if _, err := f.ReadAt(ctx, got, 0); err != nil {
		return err
	}
	if !bytes.Equal(got, data) {
		return fmt.Errorf("%s: read other data than were written in round %d", name, round)
	}
	return nil
}

// A rewriter is a client at work, and the rounds that it has done.
type rewriter struct {
	rounds atomic.Int64
	err    atomic.Pointer[error]
}

func (r *rewriter) run(ctx context.Context, fsys *client.FS, name string, stop <-chan struct{}) {
	for round := 0; ; round++ {
		if err := rewrite(ctx, fsys, name, round); err != nil {
			r.err.Store(&err)
			return
		}
		r.rounds.Add(1)
		select {
		case <-stop:
			return
		default:
		}
	}
}

// The clients would report the end of a connection: they do not try again.
func TestReloadsUnderLoadAreNoticedByNobody(t *testing.T) {
	data, other := exporting(t, "/data", nil), exporting(t, "/other", nil)
	s := start(t, func(c *Config) { c.Exports, c.AllowOthers = []Export{data, other}, true })
	stop := make(chan struct{})
	var ends sync.WaitGroup
	clients := make(map[string]*rewriter)
	for over, c := range s.ways(t) {
		for i := range 2 {
			name, r := fmt.Sprintf("%s-%d", over, i), new(rewriter)
			clients[name] = r
			fsys := dial(t, c, "/data")
			ends.Go(func() { r.run(t.Context(), fsys, name, stop) })
		}
	}
	// Each kind of change, again and again.
	fresh := exporting(t, "/fresh", nil)
	limited, restricted := data, other
	limited.Quota = Quota{Connections: 8, ClientConnections: 8, Bandwidth: 1 << 34}
	restricted.Allow, restricted.Files.ReadOnly = theirs, true
	broken := fresh
	broken.Files.Root = filepath.Join(fresh.Files.Root, "none")
	for range 10 {
		for _, list := range [][]Export{{limited}, {fresh, data}, {other, limited, fresh}, {data, restricted}, {data, broken}} {
			if err := s.Reload(list); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
		}
		for _, r := range clients {
			before := r.rounds.Load()
			nettest.Until(t, func() bool { return r.rounds.Load() > before || r.err.Load() != nil })
		}
	}
	close(stop)
	nettest.AwaitGroup(t, &ends)
	for name, r := range clients {
		if err := r.err.Load(); err != nil {
			t.Errorf("%s, after %d rounds: %v", name, r.rounds.Load(), *err)
		}
	}
}

// clients counts the connections.
func (s *Server) clients() (n int) {
	for _, stats := range s.ServerStats() {
		n += stats.Connections
	}
	return n
}

func TestAClientUsesTwoExportsOfAServer(t *testing.T) {
	one, two := exporting(t, "/one", nil), exporting(t, "/two", func(x *Export) { x.Files.ReadOnly = true })
	inner := exporting(t, "/two/inner", nil)
	s := start(t, func(c *Config) { c.Exports, c.AllowOthers = []Export{one, two, inner}, true })
	for over, c := range s.ways(t) {
		exports := map[string]*client.FS{}
		for _, x := range []Export{one, two, inner} {
			fsys := dial(t, c, x.Name)
			exports[x.Name] = fsys
			f, err := fsys.Open(t.Context(), "file")
			if err != nil {
				t.Fatal(err)
			}
			b := make([]byte, len(x.Name))
			if _, err := f.ReadAt(t.Context(), b, 0); err != nil || string(b) != x.Name {
				t.Errorf("over %s, the file of %s has %q, %v", over, x.Name, b, err)
			}
			err = rewrite(t.Context(), fsys, "new", 1)
			if x.Files.ReadOnly != (err != nil) {
				t.Errorf("over %s, writing to %s: %v", over, x.Name, err)
			}
		}
		if _, err := exports["/two"].Open(t.Context(), "new"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("over %s, what was written to /one is in /two: %v", over, err)
		}
	}
	if n := s.clients(); n != 2 {
		t.Errorf("%d connections, want one for each transport", n)
	}
}
