//go:build unix

package main

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/hinshun/vt10x"

	"github.com/weft-rdma/weft/cmd/weft/internal/observe"
	"github.com/weft-rdma/weft/oncrpc"
)

// A screen is a terminal that a program draws on.
type screen struct {
	t    *testing.T
	pty  *os.File
	term vt10x.Terminal
	mu   sync.Mutex
	news chan struct{}
}

// openScreen starts a command on a terminal of its own.
func openScreen(t *testing.T, cols, rows uint16, cmd *exec.Cmd) *screen {
	t.Helper()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: cols, Rows: rows})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, pty: f, term: vt10x.New(vt10x.WithSize(int(cols), int(rows)), vt10x.WithWriter(f)), news: make(chan struct{}, 1)}
	go s.read()
	t.Cleanup(func() { f.Close() })
	return s
}

func (s *screen) read() {
	b := make([]byte, 4096)
	for {
		n, err := s.pty.Read(b)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.term.Write(b[:n])
		s.mu.Unlock()
		select {
		case s.news <- struct{}{}:
		default:
		}
	}
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.term.String()
}

// await waits until the screen is as it should be.
func (s *screen) await(what string, ok func(text string) bool) {
	s.t.Helper()
	late := time.After(time.Minute)
	for !ok(s.text()) {
		select {
		case <-s.news:
		case <-late:
			s.t.Fatalf("%s: the screen shows\n%s", what, s.text())
		}
	}
}

// resize changes the size, of which the system tells the program.
func (s *screen) resize(cols, rows uint16) {
	s.t.Helper()
	s.mu.Lock()
	s.term.Resize(int(cols), int(rows))
	s.mu.Unlock()
	if err := pty.Setsize(s.pty, &pty.Winsize{Cols: cols, Rows: rows}); err != nil {
		s.t.Fatal(err)
	}
}

// busy is a server with many connections.
type busy struct{}

func (busy) ServerStats() map[string]oncrpc.ServerStats {
	return map[string]oncrpc.ServerStats{"rdma": {Connections: 40, Credits: 64}}
}

func (busy) Connections() (all []oncrpc.ConnectionStats) {
	for i := range 40 {
		all = append(all, oncrpc.ConnectionStats{
			Network: "rdma", Remote: &net.TCPAddr{IP: net.IPv4(192, 0, 2, byte(i)), Port: 1000}, Origin: "x", OctetsIn: 5,
		})
	}
	return all
}

// TestTopDrawsOnATerminal watches a command that comes and goes, on a terminal whose size
// changes.
func TestTopDrawsOnATerminal(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	o := observe.New(observe.Config{Version: "4.7.11"})
	o.SetServer(busy{})
	o.Serving()
	serve := func() *observe.Scraped {
		ln, err := observe.Listen(context.Background(), "unix:"+socket)
		if err != nil {
			t.Fatal(err)
		}
		return o.Serve(ln)
	}
	first := serve()
	weft, err := exec.LookPath("weft")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(weft, "top", "--interval", "20ms", "unix:"+socket)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	s := openScreen(t, 110, 30, cmd)
	t.Cleanup(func() { cmd.Process.Kill() })

	s.await("the state", func(text string) bool {
		return strings.Contains(text, "weft 4.7.11") && strings.Contains(text, "serving") &&
			strings.Contains(text, "connections 40") && strings.Contains(text, "192.0.2.1:1000") &&
			strings.Contains(text, "more lines") && strings.Contains(text, "q quits")
	})
	s.resize(50, 12)
	s.await("a small screen", func(text string) bool {
		return strings.Contains(text, "weft 4.7.11") && strings.Contains(text, "and 38 more lines") && strings.Contains(text, "q quits")
	})
	s.resize(110, 30)
	first.Close()
	s.await("the end of the command", func(text string) bool {
		return strings.Contains(text, "does not answer since") && strings.Contains(text, "Trying again")
	})
	again := serve()
	defer again.Close()
	s.await("its return", func(text string) bool { return strings.Contains(text, "connections 40") })
	o.Draining()
	s.await("its drain", func(text string) bool { return strings.Contains(text, "NOT READY") })
	if _, err := s.pty.WriteString("q"); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after q: %v", err)
	}
}
