package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-rdma/weft/cmd/weft/internal/confine"
	"github.com/weft-rdma/weft/cmd/weft/internal/service"
	"github.com/weft-rdma/weft/internal/nettest"
)

// The workers of the tests are this binary. The only argument says how they behave.
func TestMain(m *testing.M) {
	if os.Getenv(service.ControlVariable) != "" {
		os.Exit(work(os.Args[1]))
	}
	os.Exit(m.Run())
}

// work is a worker that answers each connection with the list in the file "list" that is
// beside its address, and with how often it was told to reload. It returns its exit status.
func work(dir string) int {
	m, err := service.Open()
	if err != nil {
		return 101
	}
	address := "127.0.0.1:0"
	var ln net.Listener
	if got := m.Sockets.Take("rdma", address); len(got) > 0 {
		ln = got[0].Listener
	} else if ln, err = net.Listen("tcp", address); err != nil {
		return 102
	}
	version, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil || string(version) == "broken" {
		return 7
	}
	if err := m.Store(service.StoredName("rdma", address), ln.(syscall.Conn)); err != nil {
		return 103
	}
	if err := m.Ready(fmt.Sprintf("%s at %v", version, ln.Addr())); err != nil {
		return 104
	}
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			fmt.Fprintf(nc, "%s", version)
			nc.Close()
		}
	}()
	for {
		c, _ := m.Next()
		switch c {
		case service.Reload:
			m.Status("reloaded")
		case service.Interrupt:
			return 3
		case service.Replaced:
			ln.Close()
			m.Stopping("must not be passed on")
			return 5
		default:
			return 0
		}
	}
}

// A watched is a supervisor under test.
type watched struct {
	t      *testing.T
	dir    string
	rules  []confine.Rule // that it looks up
	reload chan os.Signal
	notes  *net.UnixConn // what the service manager hears
	said   chan string   // notices
	end    context.CancelFunc
	status chan int
}

// watch starts a supervisor whose workers are of version 1.
func watch(t *testing.T, start func(*exec.Cmd, *confine.Rules) error) *watched {
	t.Helper()
	w := &watched{t: t, dir: t.TempDir(), reload: make(chan os.Signal), said: make(chan string, 10), status: make(chan int, 1)}
	w.write("1")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w.rules = []confine.Rule{{Path: w.dir, Access: confine.Read}, {Path: self, Access: confine.Execute}, {Path: "/usr", Access: confine.Execute}, {Path: "/lib", Access: confine.Execute},
		{Path: "/lib64", Access: confine.Execute}, {Path: "/etc", Access: confine.Read}, {Path: "/proc", Access: confine.Read}, {Path: "/dev/null", Access: confine.Change}}
	short, err := os.MkdirTemp("", "weft")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	at := filepath.Join(short, "s")
	if w.notes, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.notes.Close() })
	w.notes.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs
	t.Setenv("NOTIFY_SOCKET", at)
	manager, err := service.Open()
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	w.end = end
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer manager.Close()
		status, err := Run(ctx, Config{
			Program: self, Args: []string{"weft", w.dir}, Start: start, Reload: w.reload, Manager: manager,
			Rules: func() (*confine.Rules, error) { return confine.Look(w.rules, w.rules[len(w.rules)-1].Path) },
			Log:   slog.New(slog.DiscardHandler), Notice: func(text string) { w.said <- text },
		}, func() service.Command { return service.Interrupt })
		if err != nil {
			t.Error(err)
		}
		w.status <- status
	}()
	t.Cleanup(func() { end(); <-ended })
	return w
}

// write says which version a worker has that starts.
func (w *watched) write(version string) {
	if err := os.WriteFile(filepath.Join(w.dir, "version"), []byte(version), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// note waits for a notification with a line that begins so, and returns the rest.
func (w *watched) note(begin string) string {
	w.t.Helper()
	b := make([]byte, 4096)
	n, err := w.notes.Read(b)
	if err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(b[:n]), "\n") {
		if rest, ok := strings.CutPrefix(line, begin); ok {
			return rest
		}
	}
	w.t.Fatalf("heard %q, want %q", b[:n], begin)
	return ""
}

// ask returns the version of the worker that accepts a connection.
func (w *watched) ask(address string) string {
	w.t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	defer nc.Close()
	b, err := io.ReadAll(nc)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

// free starts a worker that is not confined.
func free(cmd *exec.Cmd, _ *confine.Rules) error { return cmd.Start() }

// bothWays runs a test with workers that landlock confines, if there is landlock, and with
// others.
func bothWays(t *testing.T, test func(*testing.T, *watched)) {
	t.Run("not confined", func(t *testing.T) { test(t, watch(t, free)) })
	t.Run("confined", func(t *testing.T) {
		if _, err := confine.Version(); err != nil {
			t.Skip(err)
		}
		test(t, watch(t, nil))
	})
}

func TestAWorkerIsPassedOnAndEndsWithTheSupervisor(t *testing.T) {
	bothWays(t, func(t *testing.T, w *watched) {
		at := w.note("STATUS=1 at ")
		if got := w.ask(at); got != "1" {
			t.Errorf("answered %q", got)
		}
		w.reload <- syscall.SIGHUP // the same rules
		w.note("STATUS=reloaded")
		w.end()
		w.note("STOPPING=1")
		if got := nettest.Await(t, w.status); got != 3 {
			t.Errorf("status %d, want 3, that of an interrupt", got)
		}
	})
}

func TestANewPlaceTakesANewWorkerWithTheSameSockets(t *testing.T) {
	bothWays(t, func(t *testing.T, w *watched) {
		at := w.note("STATUS=1 at ")
		// Somebody connects all the time, and is never refused.
		stop, asked := make(chan struct{}), make(chan error, 1)
		go func() {
			for {
				select {
				case <-stop:
					asked <- nil
					return
				default:
				}
				nc, err := net.Dial("tcp", at)
				if err != nil {
					asked <- err
					return
				}
				io.Copy(io.Discard, nc)
				nc.Close()
			}
		}()
		for _, version := range []string{"2", "3"} {
			w.write(version)
			w.rules = append([]confine.Rule{{Path: t.TempDir(), Access: confine.Change}}, w.rules...)
			w.reload <- syscall.SIGHUP
			w.note("RELOADING=1")
			if got := w.note("STATUS=" + version + " at "); got != at {
				t.Errorf("it listens at %s, and before at %s", got, at)
			}
		}
		// The old one may still answer one that it has accepted.
		for w.ask(at) != "3" {
		}
		close(stop)
		if err := nettest.Await(t, asked); err != nil {
			t.Errorf("a client was refused: %v", err)
		}
		w.end()
		w.note("STOPPING=1") // and nothing of the workers that were replaced
		if got := nettest.Await(t, w.status); got != 3 {
			t.Errorf("status %d, want 3, that of the last worker", got)
		}
	})
}

func TestAWorkerStaysIfItsSuccessorFails(t *testing.T) {
	bothWays(t, func(t *testing.T, w *watched) {
		at := w.note("STATUS=1 at ")
		w.write("broken")
		before := w.rules
		w.rules = append([]confine.Rule{{Path: t.TempDir(), Access: confine.Read}}, before...)
		w.reload <- syscall.SIGHUP
		w.note("RELOADING=1")
		w.note("READY=1")
		if got := nettest.Await(t, w.said); !strings.Contains(got, "status 7") {
			t.Errorf("said %q", got)
		}
		w.rules = append(before, confine.Rule{Path: filepath.Join(w.dir, "none")})
		w.reload <- syscall.SIGHUP
		w.note("RELOADING=1")
		w.note("READY=1")
		if got := nettest.Await(t, w.said); !strings.Contains(got, "none") {
			t.Errorf("said %q", got)
		}
		if got := w.ask(at); got != "1" {
			t.Errorf("answered %q", got)
		}
	})
}

func TestAWorkerThatEndsIsTheEnd(t *testing.T) {
	w := watch(t, func(cmd *exec.Cmd, _ *confine.Rules) error {
		cmd.Args = []string{"weft", "none"} // where there is no version
		return cmd.Start()
	})
	if got := nettest.Await(t, w.status); got != 7 {
		t.Errorf("status %d, want 7", got)
	}
}

func TestAWorkerThatCannotStartIsAnError(t *testing.T) {
	wrong := errors.New("wrong")
	manager, err := service.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	_, err = Run(t.Context(), Config{
		Rules: func() (*confine.Rules, error) { return new(confine.Rules), nil }, Manager: manager,
		Start: func(*exec.Cmd, *confine.Rules) error { return wrong }, Log: slog.New(slog.DiscardHandler),
	}, nil)
	if !errors.Is(err, wrong) {
		t.Errorf("got %v", err)
	}
}

// TestTheSocketsOfTheServiceManagerGoToTheWorker gives the supervisor a socket.
func TestTheSocketsOfTheServiceManagerGoToTheWorker(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var s store
	sockets := service.Sockets{{Name: "rdma", Listener: ln}}
	if err := s.adopt(&sockets); err != nil || len(s.all) != 1 || len(sockets) != 0 || s.all[0].name != "rdma" {
		t.Fatalf("%+v, %v", s.all, err)
	}
	a, b := new(worker), new(worker)
	dup := func() *os.File {
		fd, err := syscall.Dup(int(s.all[0].file.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		return os.NewFile(uintptr(fd), "socket")
	}
	s.add(a, "rdma", dup())
	s.keep(a)
	s.add(b, "rdma", dup())
	s.add(b, "other", dup())
	s.forget(b) // it has failed
	if len(s.all) != 1 || s.all[0].owner != a {
		t.Errorf("%+v", s.all)
	}
	s.add(b, "rdma", dup())
	s.keep(b)
	if len(s.all) != 1 || s.all[0].owner != b {
		t.Errorf("%+v", s.all)
	}
	s.close()
	if nc, err := net.Dial("tcp", ln.Addr().String()); err == nil {
		nc.Close()
		t.Error("it still listens")
	}
}

// A told is a worker without a process, and what it is told.
type told struct {
	*worker
	peer *net.UnixConn
}

func newTold(t *testing.T, status int) told {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_SEQPACKET|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ends []*net.UnixConn
	for _, fd := range pair {
		f := os.NewFile(uintptr(fd), "control")
		c, err := net.FileConn(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		ends = append(ends, c.(*net.UnixConn))
	}
	return told{&worker{conn: ends[0], rules: new(confine.Rules), status: status}, ends[1]}
}

// last is what it was told since the last time.
func (w *told) last() (all string) {
	w.peer.SetReadDeadline(time.Now().Add(time.Millisecond)) // what was written is there
	b := make([]byte, 64)
	for {
		n, err := w.peer.Read(b)
		if err != nil {
			return all
		}
		all += string(b[:n])
	}
}

func TestASignalInAHandOverLeavesTheReplacedToDrain(t *testing.T) {
	old, active, next := newTold(t, 5), newTold(t, 0), newTold(t, 143)
	s := &supervisor{cfg: Config{Manager: new(service.Manager)}, active: active.worker, next: next.worker, old: []*worker{old.worker}, served: true}
	s.end(service.Terminate)
	if o, a, n := old.last(), active.last(), next.last(); o != "" || a != "terminate" || n != "terminate" {
		t.Errorf("told the replaced one %q, the active one %q, the next one %q", o, a, n)
	}
	s.gone(active.worker)
	s.gone(next.worker)
	s.gone(old.worker)
	if s.status != 0 {
		t.Errorf("status %d, want 0, that of the active one", s.status)
	}
}

// The active worker dies before its successor, which fails.
func TestWithoutASuccessorNothingIsReloaded(t *testing.T) {
	old, active, next := newTold(t, 5), newTold(t, 137), newTold(t, 7)
	s := &supervisor{cfg: Config{Manager: new(service.Manager)}, active: active.worker, next: next.worker, old: []*worker{old.worker}, served: true}
	s.gone(active.worker)
	if n := next.last(); n != "" || s.ending {
		t.Errorf("the successor was told %q", n)
	}
	s.gone(next.worker)
	s.reload()
	if !s.ending || s.status != 137 {
		t.Errorf("ending %v with status %d", s.ending, s.status)
	}
}
