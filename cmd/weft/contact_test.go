package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/weft-rdma/weft/cmd/weft/internal/files"
	"github.com/weft-rdma/weft/cmd/weft/internal/fileserver"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
)

// listen has every connection to the returned address handled by peer.
func listen(t *testing.T, peer func(net.Conn)) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				peer(nc)
			}()
		}
	}()
	return ln.Addr().String()
}

// says is a peer that sends text, at once or when it has got something, and hangs
// up when the other side does.
func says(text string, asked bool) func(net.Conn) {
	return func(nc net.Conn) {
		if asked {
			nc.Read(make([]byte, 1))
		}
		io.WriteString(nc, text)
		io.Copy(io.Discard, nc)
	}
}

// hangsUp is a peer that takes something and hangs up.
func hangsUp(nc net.Conn) { nc.Read(make([]byte, 1)) }

// exporting exports a directory, with the same handles each time.
func exporting(dir string) []fileserver.Export {
	return []fileserver.Export{{Name: "/", Files: folder.Config{Root: dir, Squash: folder.SquashNone, HandleKey: make([]byte, 32)}}}
}

func TestWhoIsNoServerOfNFSIsExplained(t *testing.T) {
	cfg := fileserver.Config{Exports: exporting(t.TempDir()), Unmarked: true, RDMA: "127.0.0.1:0", TCP: "127.0.0.1:0", PortMap: fileserver.PortMapOff}
	server, err := fileserver.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Shutdown(context.Background()) })
	for _, tt := range []struct {
		name    string
		address string
		tcp     bool
		status  int
		want    []string
	}{
		{"NFS over TCP, by RDMA", server.TCP().String(), false, 1, []string{"does not answer as NFS over RDMA", "try --tcp"}},
		{"NFS over RDMA, by TCP", server.RDMA().String(), true, 1, []string{"does not answer as NFS over TCP", "without --tcp"}},
		{"weft ping -s, by RDMA", pingServer(t), false, 1, []string{"as NFS over RDMA", "message too long", "try --tcp"}},
		{"HTTP, by RDMA", listen(t, says("HTTP/1.1 400 Bad Request\r\n\r\n", true)), false, 1, []string{"as NFS over RDMA", "HTTP/1.1"}},
		{"HTTP, by TCP", listen(t, says("HTTP/1.1 400 Bad Request\r\n\r\n", true)), true, 1, []string{"as NFS over TCP", "HTTP"}},
		{"SSH, by RDMA", listen(t, says("SSH-2.0-OpenSSH_9.9\r\n", false)), false, 1, []string{"as NFS over RDMA", "SSH-2.0"}},
		{"SSH, by TCP", listen(t, says("SSH-2.0-OpenSSH_9.9\r\n", false)), true, 1, []string{"as NFS over TCP", "SSH-"}},
		{"who hangs up, by RDMA", listen(t, hangsUp), false, 1, []string{"as NFS over RDMA", "try --tcp"}},
		{"who hangs up, by TCP", listen(t, hangsUp), true, 1, []string{"as NFS over TCP", "without --tcp"}},
		{"a silent one, by RDMA", listen(t, says("", true)), false, 3, []string{"as NFS over RDMA", "try --tcp", "timed out"}},
		{"a silent one, by TCP", listen(t, says("", true)), true, 3, []string{"as NFS over TCP", "without --tcp", "has not answered for 1 s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			patience := "1m" // of others there is an answer
			if tt.status == exitSilent {
				patience = "1s"
			}
			args := []string{"ls", "--timeout", patience, "nfs://" + tt.address + "/"}
			if tt.tcp {
				args = append(args, "--tcp")
			}
			var said strings.Builder
			if status := run(t.Context(), args, io.Discard, &said); status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, want := range tt.want {
				if !strings.Contains(said.String(), want) {
					t.Errorf("it said %q, and not %q", said.String(), want)
				}
			}
			if testing.Verbose() {
				t.Log(said.String())
			}
		})
	}
}

// pingServer is the address of weft ping -s.
func pingServer(t *testing.T) string {
	t.Helper()
	heard, stderr := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan int, 1)
	go func() {
		served <- run(ctx, []string{"ping", "-s", "-P", "-a", "127.0.0.1", "-p", "0"}, io.Discard, stderr)
		stderr.Close()
	}()
	t.Cleanup(func() { stop(); <-served })
	line, err := bufio.NewReader(heard).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, heard)
	return strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
}

// An NFS server drops what a ping sends (RFC 8166 §4.5), and says what it is before.
func TestAPingOfAnNFSServerFailsAtOnce(t *testing.T) {
	cfg := fileserver.Config{Exports: exporting(t.TempDir()), Unmarked: true, RDMA: "127.0.0.1:0", PortMap: fileserver.PortMapOff}
	server, err := fileserver.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Shutdown(context.Background())
	_, port, _ := net.SplitHostPort(server.RDMA().String())
	var said strings.Builder
	status := run(t.Context(), []string{"ping", "-c", "-C", "1", "-a", "127.0.0.1", "-p", port, "--timeout", "1m"}, io.Discard, &said)
	if status != exitFailed || !strings.Contains(said.String(), "RPC over RDMA") {
		t.Errorf("status %d, want %d: %s", status, exitFailed, &said)
	}
}

func TestWhoIsNoOtherEndIsExplained(t *testing.T) {
	for name, peer := range map[string]struct {
		peer   func(net.Conn)
		status int
	}{
		"HTTP":         {says("HTTP/1.1 400 Bad Request\r\n\r\n", true), 1},
		"SSH":          {says("SSH-2.0-OpenSSH_9.9\r\n", false), 1},
		"who hangs up": {hangsUp, 1},
		"silence":      {says("", true), 3},
	} {
		for _, args := range [][]string{
			{"ping", "-c", "-C", "1", "-a", "127.0.0.1", "-p"},
			{"perf", "--connect"},
		} {
			t.Run(args[0]+" and "+name, func(t *testing.T) {
				t.Parallel()
				patience := "--timeout=1m"
				if peer.status == exitSilent {
					patience = "--timeout=1s"
				}
				address := listen(t, peer.peer)
				expected := "does not answer as weft perf --listen does"
				if args[0] == "ping" {
					_, address, _ = net.SplitHostPort(address)
					expected = "expected weft ping -s or rping -s"
				}
				var said strings.Builder
				if status := run(t.Context(), append(slices.Clone(args), address, patience), io.Discard, &said); status != peer.status {
					t.Errorf("status %d, want %d", status, peer.status)
				}
				if !strings.Contains(said.String(), expected) {
					t.Errorf("it said %q, and not %q", said.String(), expected)
				}
			})
		}
	}
}

func TestAServerThatCannotBeReachedIsExplained(t *testing.T) {
	var m mounts
	late := &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: nfs.PortRDMA}, Err: os.ErrDeadlineExceeded}
	err := m.dialError(files.URL{Host: "192.0.2.1"}, fmt.Errorf("connecting: %w", late))
	if !silent(err) || !strings.Contains(err.Error(), "192.0.2.1:20049 cannot be reached: is the host up") {
		t.Error(err)
	}
}

// A gate is standard output that is held up at its first byte until it is opened,
// and standard error beside it.
type gate struct {
	mu      sync.Mutex
	bytes   int
	reached chan struct{} // is closed at the first byte
	open    chan struct{}
	said    strings.Builder
	line    chan string // what is said
}

func (g *gate) Write(p []byte) (int, error) {
	if g.bytes == 0 {
		close(g.reached)
		<-g.open
	}
	g.bytes += len(p)
	return len(p), nil
}

// lines is standard error.
type lines struct{ *gate }

func (l lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.said.Write(p)
	l.line <- string(p)
	return len(p), nil
}

func TestAServerThatGoesIsWaitedForAndItsReturnIsTold(t *testing.T) {
	t.Parallel()
	for _, transport := range []string{"RDMA", "TCP"} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			const size = 16 << 20
			if err := errors.Join(os.WriteFile(filepath.Join(dir, "f"), nil, 0o600), os.Truncate(filepath.Join(dir, "f"), size)); err != nil {
				t.Fatal(err)
			}
			cfg := fileserver.Config{Exports: exporting(dir), Unmarked: true, RDMA: "127.0.0.1:0", TCP: "127.0.0.1:0", PortMap: fileserver.PortMapOff}
			start := func() *fileserver.Server {
				c := cfg
				s, err := fileserver.Start(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				cfg.RDMA, cfg.TCP = s.RDMA().String(), s.TCP().String()
				return s
			}
			server := start()
			g := &gate{reached: make(chan struct{}), open: make(chan struct{}), line: make(chan string, 64)}
			args := []string{"cat", "--requests", "2", "nfs://" + cfg.RDMA + "/f"}
			if transport == "TCP" {
				args = []string{"cat", "--requests", "2", "--tcp", "nfs://" + cfg.TCP + "/f"}
			}
			status := make(chan int)
			go func() { status <- run(t.Context(), args, g, lines{g}) }()
			nettest.Await(t, g.reached)
			now, cancel := context.WithCancel(t.Context())
			cancel()
			server.Shutdown(now)
			close(g.open)
			if got := nettest.Await(t, g.line); !strings.Contains(got, "is not responding, still trying (") {
				t.Errorf("it said %q of a server that is gone", got)
			}
			server = start()
			defer server.Shutdown(now)
			if got := nettest.Await(t, status); got != 0 || g.bytes != size {
				t.Errorf("status %d after %d bytes, want 0 and %d", got, g.bytes, size)
			}
			if !strings.HasSuffix(g.said.String(), "responds again\n") {
				t.Errorf("it said %q, want that the server responds again", g.said.String())
			}
		})
	}
}

func TestASilentServerEndsACommandWithSeveralURLs(t *testing.T) {
	url := "nfs://" + listen(t, says("", true)) + "/"
	for _, command := range []string{"ls", "cat", "stat", "df", "mkdir", "rm", "mv", "cp"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var said strings.Builder
			args := []string{command, "--timeout", "100ms", url + "a", url + "b", url + "c"}
			if status := run(t.Context(), args, io.Discard, &said); status != exitSilent {
				t.Errorf("status %d, want %d", status, exitSilent)
			}
			if n := strings.Count(said.String(), "as NFS over RDMA"); n != 1 {
				t.Errorf("it was said %d times: %q", n, said.String())
			}
		})
	}
}
