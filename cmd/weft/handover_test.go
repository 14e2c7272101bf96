//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/binding"
	"github.com/weft-rdma/weft/nfs/client"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/rpcrdma"
	"github.com/weft-rdma/weft/rpctcp"
)

// configure writes a configuration file with these exports below dir.
func configure(t *testing.T, dir, head string, exports ...string) {
	t.Helper()
	text := head
	for _, name := range exports {
		text += fmt.Sprintf("\n[[export]]\npath = %q\nname = %q\nsquash = \"none\"\n", name, "/"+name)
	}
	if err := os.WriteFile(filepath.Join(dir, "serve.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// dial mounts an export over RDMA or TCP with a client that connects again.
func dial(t *testing.T, address, export string, tcp bool) *client.FS {
	t.Helper()
	var c interface {
		oncrpc.Caller
		Close() error
	}
	var err error
	if tcp {
		c, err = rpctcp.NewClient(rpctcp.ClientConfig{Address: address})
	} else {
		c, err = rpcrdma.NewClient(rpcrdma.ClientConfig{Address: address, Bindings: binding.NFS()})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fsys, err := client.Dial(t.Context(), client.Config{NFS: c, Export: export, Requests: 4})
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// failed stands for the rounds of a client that has met an error.
const failed = 1 << 62

// rewrite makes a file, reads it again, and removes it, with other data each time, until it is
// told to stop. It counts its rounds. No call may be executed twice.
func rewrite(ctx context.Context, fsys *client.FS, name string, rounds *atomic.Int64, stop <-chan struct{}) error {
	for {
		f, err := fsys.Create(ctx, name, nfs.Guarded, client.Mode(0o600))
		if err != nil {
			return err
		}
		data := bytes.Repeat([]byte(fmt.Sprintf("%8d", rounds.Load())), 100<<10/8)
		if _, err := f.WriteAt(ctx, data, 0); err != nil {
			return err
		}
		got := make([]byte, len(data))
		if _, err := f.ReadAt(ctx, got, 0); err != nil {
			return err
		}
		if !bytes.Equal(got, data) {
			return errors.New("read other data than were written")
		}
		if err := fsys.Remove(ctx, name); err != nil {
			return err
		}
		rounds.Add(1)
		select {
		case <-stop:
			return nil
		default:
		}
	}
}

// Every other reload has a new directory, and so takes a new process.
func TestHandOversUnderLoadCostNobodyAnError(t *testing.T) {
	if _, err := confine.Version(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	served(t, filepath.Join(dir, "data"), "text")
	configure(t, dir, "portmap = \"off\"\nallow-others = true\n", "data")
	rdma, tcp := listenTCP(t), listenTCP(t)
	s := newSystemd(t, dir, map[string]*net.TCPListener{"rdma": rdma, "nfs": tcp}, "serve", "--config", "serve.toml", "--landlock", "require", "--drain", "1m")
	s.start()
	s.note("READY=1")
	stop := make(chan struct{})
	var ends sync.WaitGroup
	rounds := make(map[string]*atomic.Int64)
	for i := range 4 {
		name, at := fmt.Sprintf("RDMA-%d", i), rdma.Addr()
		if i%2 > 0 {
			name, at = fmt.Sprintf("TCP-%d", i), tcp.Addr()
		}
		fsys, n := dial(t, at.String(), "/data", i%2 > 0), new(atomic.Int64)
		rounds[name] = n
		ends.Go(func() {
			defer fsys.Close() // while there is a server, so that it need not wait
			if err := rewrite(t.Context(), fsys, name, n, stop); err != nil {
				t.Errorf("%s, after %d rounds: %v", name, n.Load(), err)
				n.Store(failed)
			}
		})
	}
	rdma.Close() // the server has the sockets, and nobody else
	tcp.Close()
	exports := []string{"data"}
	for i := range 3 {
		name := fmt.Sprintf("more-%d", i)
		served(t, filepath.Join(dir, name), name)
		exports = append(exports, name)
		configure(t, dir, "portmap = \"off\"\nallow-others = true\n", exports...)
		s.cmd.Process.Signal(syscall.SIGHUP)
		s.note("RELOADING=1")
		s.note("READY=1")
		s.cmd.Process.Signal(syscall.SIGHUP) // and one that takes none
		s.note("RELOADING=1")
		s.note("READY=1")
		for _, n := range rounds {
			before := n.Load()
			nettest.Until(t, func() bool { return n.Load() > before || before == failed })
		}
	}
	close(stop)
	nettest.AwaitGroup(t, &ends)
	if said := s.said(); strings.Contains(said, "not reloaded") || strings.Contains(said, "ended") {
		t.Error(said)
	}
	s.cmd.Process.Signal(syscall.SIGTERM)
	s.note("STOPPING=1")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("ended with %v: %s", err, s.said())
	}
}

// The supervisor can't say that it ends, nor keep the server from going on.
func TestAServerEndsWithASupervisorThatIsKilled(t *testing.T) {
	if _, err := confine.Version(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	served(t, filepath.Join(dir, "data"), "text")
	rdma := listenTCP(t)
	s := newSystemd(t, dir, map[string]*net.TCPListener{"rdma": rdma}, "serve", "data", "--tcp", "off", "--landlock", "require")
	s.start()
	s.note("READY=1")
	if names := childrenOf(t, s.cmd.Process.Pid); !slices.Equal(names, []string{"weft"}) {
		t.Errorf("the processes of the supervisor are called %q", names)
	}
	rdma.Close()
	s.cmd.Process.Kill()
	s.cmd.Wait()
	nettest.Until(t, func() bool {
		nc, err := net.Dial("tcp", rdma.Addr().String())
		if err == nil {
			nc.Close()
		}
		return err != nil
	})
}

// childrenOf returns the names of the processes that one has started.
func childrenOf(t *testing.T, pid int) (names []string) {
	t.Helper()
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil || len(children) == 0 {
		t.Fatalf("no children of %d: %v", pid, err)
	}
	for _, file := range children {
		pids, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended
		}
		for _, child := range strings.Fields(string(pids)) {
			name, err := os.ReadFile("/proc/" + child + "/comm")
			if err != nil {
				t.Fatal(err)
			}
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return names
}
