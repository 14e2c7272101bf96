//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/internal/nettest"
)

// A systemd is the part of it that a server sees: a socket for notifications, and sockets
// that listen already.
type systemd struct {
	t     *testing.T
	notes *net.UnixConn
	cmd   *exec.Cmd
	err   *os.File
}

// newSystemd makes a service of weft with these arguments and sockets. Start starts it.
func newSystemd(t *testing.T, dir string, sockets map[string]*net.TCPListener, args ...string) *systemd {
	t.Helper()
	short, err := os.MkdirTemp("", "weft") // names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	at := filepath.Join(short, "notify")
	s := &systemd{t: t}
	if s.notes, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.notes.Close() })
	s.notes.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs
	weft, err := exec.LookPath("weft")
	if err != nil {
		t.Fatal(err)
	}
	// The shell has the process ID that the command will have.
	s.cmd = exec.Command("/bin/sh", append([]string{"-c", `LISTEN_PID=$$ exec "$@"`, "sh", weft}, args...)...)
	if s.err, err = os.Create(filepath.Join(short, "stderr")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.err.Close() })
	s.cmd.Dir, s.cmd.Stderr = dir, s.err
	var names []string
	for name, ln := range sockets {
		f, err := ln.File()
		if err != nil {
			t.Fatal(err)
		}
		s.cmd.ExtraFiles = append(s.cmd.ExtraFiles, f)
		names = append(names, name)
	}
	s.cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+at, "WATCHDOG_USEC=20000", "STATE_DIRECTORY="+filepath.Join(short, "state"),
		fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	return s
}

// start starts the service, and ends it with the test.
func (s *systemd) start() {
	s.t.Helper()
	err := s.cmd.Start()
	for _, f := range s.cmd.ExtraFiles {
		f.Close()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { s.cmd.Process.Kill() })
}

// said is what the service has written to standard error.
func (s *systemd) said() string {
	s.t.Helper()
	b, err := os.ReadFile(s.err.Name())
	if err != nil {
		s.t.Fatal(err)
	}
	return string(b)
}

// note waits for a notification with a line.
func (s *systemd) note(want string) {
	s.t.Helper()
	b := make([]byte, 4096)
	for {
		n, err := s.notes.Read(b)
		if err != nil {
			s.t.Fatalf("waiting for %s: %v", want, err)
		}
		for line := range strings.SplitSeq(string(b[:n]), "\n") {
			if line == want {
				return
			}
		}
	}
}

// listenTCP is a socket on a free port.
func listenTCP(t *testing.T) *net.TCPListener {
	t.Helper()
	ln, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	return ln
}

// read reads a file of a server.
func read(t *testing.T, ln net.Listener, tcp bool, name string) string {
	t.Helper()
	args := []string{"cat", fmt.Sprintf("nfs://%v/%s", ln.Addr(), name)}
	if tcp {
		args = append(args, "--tcp")
	}
	b, err := exec.Command("weft", args...).CombinedOutput()
	if err != nil {
		return err.Error() + ": " + string(b)
	}
	return string(b)
}

// served makes a directory with a file in it.
func served(t *testing.T, dir, text string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// confinements are the values of --landlock that can be tested here.
func confinements() []string {
	if _, err := confine.Version(); err != nil {
		return []string{"off"}
	}
	return []string{"off", "require"}
}

func TestAServerUsesTheSocketsOfSystemdAndNotifiesIt(t *testing.T) {
	for _, landlock := range confinements() {
		t.Run(landlock, func(t *testing.T) {
			dir := t.TempDir()
			served(t, filepath.Join(dir, "data"), "text")
			rdma, nfs, metrics := listenTCP(t), listenTCP(t), listenTCP(t)
			s := newSystemd(t, dir, map[string]*net.TCPListener{"rdma": rdma, "nfs": nfs, "metrics": metrics},
				"serve", "data", "--portmap", "off", "--allow-others", "--landlock", landlock, "--drain", "1m")
			s.start()
			s.note("READY=1")
			for _, tcp := range []bool{false, true} {
				ln := rdma
				if tcp {
					ln = nfs
				}
				if got := read(t, ln, tcp, "file"); got != "text" {
					t.Errorf("over TCP %v: read %q", tcp, got)
				}
			}
			res, err := http.Get("http://" + metrics.Addr().String() + "/readyz")
			if err != nil || res.StatusCode != http.StatusOK {
				t.Errorf("readiness: %v, %v", res, err)
			} else {
				io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			s.note("WATCHDOG=1")
			s.cmd.Process.Signal(syscall.SIGHUP)
			s.note("READY=1")
			s.cmd.Process.Signal(syscall.SIGTERM)
			s.note("STOPPING=1")
			if err := s.cmd.Wait(); err != nil {
				t.Errorf("ended with %v: %s", err, s.said())
			}
		})
	}
}

func TestASocketThatAServerDoesNotKnowIsAnError(t *testing.T) {
	dir := t.TempDir()
	served(t, filepath.Join(dir, "data"), "text")
	for _, landlock := range confinements() {
		s := newSystemd(t, dir, map[string]*net.TCPListener{"http": listenTCP(t)},
			"serve", "data", "--listen", "127.0.0.1:0", "--tcp", "off", "--landlock", landlock)
		s.start()
		err := s.cmd.Wait()
		if err == nil || !strings.Contains(s.said(), `a socket for`) || !strings.Contains(s.said(), `"http"`) {
			t.Errorf("--landlock %s: %v: %s", landlock, err, s.said())
		}
	}
}

// TestAReloadWithANewPlaceRefusesNobody replaces the directory that is served, which a
// confined process can't open.
func TestAReloadWithANewPlaceRefusesNobody(t *testing.T) {
	if _, err := confine.Version(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	served(t, data, "1")
	if err := os.Mkdir(filepath.Join(dir, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	rdma := listenTCP(t)
	s := newSystemd(t, dir, map[string]*net.TCPListener{"rdma": rdma},
		"serve", "data", "--tcp", "off", "--allow-others", "--landlock", "require", "--metrics", "unix:run/m")
	s.start()
	s.note("READY=1")
	rdma.Close() // the server has the socket, and nobody else
	stop, refused := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				refused <- nil
				return
			default:
			}
			nc, err := net.Dial("tcp", rdma.Addr().String())
			if err != nil {
				refused <- err
				return
			}
			// One at a time: the server closes what is no start-up frame.
			fmt.Fprint(nc, "This is not how MPA begins.")
			io.Copy(io.Discard, nc)
			nc.Close()
		}
	}()
	for _, version := range []string{"2", "3"} {
		if err := os.Rename(data, data+version); err != nil {
			t.Fatal(err)
		}
		served(t, data, version)
		s.cmd.Process.Signal(syscall.SIGHUP)
		s.note("RELOADING=1")
		s.note("READY=1")
		// The one that is replaced may answer until it has heard of that.
		for read(t, rdma, false, "file") != version {
			if said := s.said(); strings.Contains(said, "not reloaded") {
				t.Fatal(said)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "m")); err != nil {
		t.Errorf("the socket of metrics: %v", err)
	}
	close(stop)
	if err := nettest.Await(t, refused); err != nil {
		t.Errorf("somebody was refused: %v", err)
	}
	s.cmd.Process.Signal(os.Interrupt)
	s.note("STOPPING=1")
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("ended with %v: %s", err, s.said())
	}
}

func TestTheStatusIsOfWhatIsServedNow(t *testing.T) {
	dir := t.TempDir()
	served(t, filepath.Join(dir, "a"), "a")
	served(t, filepath.Join(dir, "b"), "b")
	const top = "portmap = \"off\"\ntcp = []\n"
	configure(t, dir, top, "a")
	s := newSystemd(t, dir, map[string]*net.TCPListener{"rdma": listenTCP(t)}, "serve", "--config", "serve.toml", "--landlock", "off")
	s.start()
	s.note("STATUS=serving /a")
	for _, step := range []struct {
		exports []string
		status  string
	}{{[]string{"a", "b"}, "STATUS=serving 2 exports"}, {[]string{"b"}, "STATUS=serving /b"}, {[]string{"none"}, "STATUS=serving /b"}} {
		configure(t, dir, top, step.exports...)
		s.cmd.Process.Signal(syscall.SIGHUP)
		s.note("RELOADING=1")
		s.note(step.status)
	}
}
