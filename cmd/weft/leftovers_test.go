package main

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
)

// A stalling server takes so many bytes of all its connections and no more until it
// is let go.
type stalling struct {
	mu     sync.Mutex
	left   int
	full   chan struct{} // is closed when it takes no more
	let    chan struct{}
	halted bool
}

type stallingConn struct {
	net.Conn
	s *stalling
}

func (s *stalling) wrap(nc net.Conn) net.Conn { return &stallingConn{nc, s} }

func (c *stallingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.s.mu.Lock()
	c.s.left -= n
	halt := c.s.left < 0
	if halt && !c.s.halted {
		c.s.halted = true
		close(c.s.full)
	}
	c.s.mu.Unlock()
	if halt {
		<-c.s.let
	}
	return n, err
}

// What an interrupted copy could not remove, as the server did not answer, is named,
// and the next copy removes it.
func TestWhatIsLeftOnAServerIsNamedAndGoesWithTheNextCopy(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, make([]byte, 16<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	start := func(at string, wrap func(net.Conn) net.Conn) *fileserver.Server {
		cfg := fileserver.Config{Exports: exporting(dir), Unmarked: true, RDMA: at, TCP: "127.0.0.1:0", PortMap: fileserver.PortMapOff, Wrap: wrap}
		s, err := fileserver.Start(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	now, cancel := context.WithCancel(t.Context())
	cancel()

	s := &stalling{left: 4 << 20, full: make(chan struct{}), let: make(chan struct{})}
	server := start("127.0.0.1:0", s.wrap)
	at := server.RDMA().String()
	ctx, interrupt := context.WithCancelCause(t.Context())
	go func() {
		<-s.full
		interrupt(signalError{os.Interrupt})
	}()
	var said strings.Builder
	if status := run(ctx, []string{"cp", source, "nfs://" + at + "/copy"}, io.Discard, &said); status != 130 {
		t.Errorf("status %d, want 130", status)
	}
	if !strings.Contains(said.String(), "left behind: nfs://"+at+"/.weft-") || !strings.HasSuffix(said.String(), ": interrupted\n") {
		t.Errorf("it said %q, and does not name what is left", said.String())
	}
	close(s.let)
	server.Shutdown(now)
	if parts, _ := filepath.Glob(filepath.Join(dir, "*")); len(parts) != 1 {
		t.Fatalf("%q are left", parts)
	}

	server = start(at, nil)
	defer server.Shutdown(now)
	said.Reset()
	if status := run(t.Context(), []string{"cp", source, "nfs://" + at + "/copy"}, io.Discard, &said); status != 0 {
		t.Errorf("status %d, want 0", status)
	}
	if !strings.Contains(said.String(), "removed nfs://"+at+"/.weft-") {
		t.Errorf("it said %q", said.String())
	}
	if got, _ := filepath.Glob(filepath.Join(dir, "*")); len(got) != 1 || filepath.Base(got[0]) != "copy" {
		t.Errorf("there are %q, want copy", got)
	}
}
