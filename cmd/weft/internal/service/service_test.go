package service

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// environ is an environment of these variables.
func environ(vars map[string]string) *environment {
	return &environment{
		get:   func(name string) string { return vars[name] },
		unset: func(name string) error { delete(vars, name); return nil },
		pid:   7, ppid: 6, first: firstSocket,
	}
}

// listenForNotes makes the socket of a service manager.
func listenForNotes(t *testing.T, name string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Skip("this system has no sockets of datagrams in the file system:", err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute)) // a test that hangs
	return c
}

func next(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 4096)
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestNotificationsAreThoseOfSystemd(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // a short name
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	at := listenForNotes(t, path)
	vars := map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "2000000", "WATCHDOG_PID": "7"}
	m, err := open(environ(vars))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if len(vars) != 0 || m.Watchdog != time.Second || m.Supervised() {
		t.Errorf("%v is left, watchdog %v, supervised %v", vars, m.Watchdog, m.Supervised())
	}
	for _, tt := range []struct {
		say  func() error
		want string
	}{
		{func() error { return m.Ready("serving /a\n/b") }, "READY=1\nSTATUS=serving /a /b"},
		{func() error { return m.Stopping("draining") }, "STOPPING=1\nSTATUS=draining"},
		{func() error { return m.Status("x") }, "STATUS=x"},
		{m.Alive, "WATCHDOG=1"},
	} {
		if err := tt.say(); err != nil {
			t.Fatal(err)
		}
		if got := next(t, at); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
	before := monotonic()
	if err := m.Reloading(); err != nil {
		t.Fatal(err)
	}
	us, ok := strings.CutPrefix(next(t, at), "RELOADING=1\nMONOTONIC_USEC=")
	if n, err := strconv.ParseInt(us, 10, 64); !ok || err != nil || n < before.Microseconds() || n > monotonic().Microseconds() {
		t.Errorf("the time is %q", us)
	}
}

func TestWithoutAManagerNothingIsSaid(t *testing.T) {
	m, err := open(environ(nil))
	if err != nil {
		t.Fatal(err)
	}
	if m.Watchdog != 0 || len(m.Sockets) != 0 || m.Ready("") != nil || m.Reloading() != nil || m.Close() != nil {
		t.Errorf("got %+v", m)
	}
	m.KeepAlive(nil, func() { t.Error("looked whether it is alive") })
}

func TestVariablesThatAreWrongAreErrors(t *testing.T) {
	for _, vars := range []map[string]string{
		{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "none")},
		{"WATCHDOG_USEC": "soon"}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "-1"}, {"WATCHDOG_USEC": "9223372036854775808"},
		{"LISTEN_PID": "7", "LISTEN_FDS": "-1"}, {"LISTEN_PID": "7", "LISTEN_FDS": "all"}, {"LISTEN_PID": "7", "LISTEN_FDS": "1000000000"},
		{"LISTEN_PID": "7", "LISTEN_FDS": "2", "LISTEN_FDNAMES": "one"},
		{ControlVariable: "x"}, {ControlVariable: "1"}, {ControlVariable: "987654"},
	} {
		name := ""
		for k, v := range vars {
			name += k + "=" + v + " "
		}
		if m, err := open(environ(vars)); err == nil {
			m.Close()
			t.Errorf("%s: no error", name)
		}
		if len(vars) != 0 {
			t.Errorf("%s: %v is left", name, vars)
		}
	}
}

func TestWhatIsForAnotherProcessIsNotUsed(t *testing.T) {
	m, err := open(environ(map[string]string{"LISTEN_PID": "8", "LISTEN_FDS": "1", "WATCHDOG_PID": "8", "WATCHDOG_USEC": "1000000"}))
	if err != nil || len(m.Sockets) != 0 || m.Watchdog != 0 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestTheWatchdogHearsTwiceInItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &Manager{Watchdog: 15 * time.Second}
		stop, ended := make(chan struct{}), make(chan struct{})
		began, looked := time.Now(), 0
		go func() {
			defer close(ended)
			m.KeepAlive(stop, func() { looked++ })
		}()
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		close(stop)
		<-ended
		if looked != 4 || time.Since(began) > time.Minute {
			t.Errorf("looked %d times in %v, want 4", looked, time.Since(began))
		}
	})
}

// sockets are some with these names.
func sockets(t *testing.T, names ...string) (all Sockets) {
	t.Helper()
	for _, name := range names {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		all = append(all, Socket{Name: name, Listener: ln})
	}
	return all
}

func names(all []Socket) string {
	var s []string
	for _, one := range all {
		s = append(s, one.Name)
	}
	return strings.Join(s, " ")
}

func TestSocketsAreTakenByPurposeAndStoredOnesByAddress(t *testing.T) {
	old, current := StoredName("rdma", "127.0.0.1:0"), StoredName("rdma", "[::1%lo]:20049")
	if strings.Contains(old+current, ":") {
		t.Errorf("%s, %s: a colon separates names", old, current)
	}
	s := sockets(t, "rdma", "nfs", current, old, "rdma")
	closed := s[3].Listener
	if got, want := names(s.Take("rdma", "[::1%lo]:20049")), "rdma "+current+" rdma"; got != want {
		t.Errorf("took %s, want %s", got, want)
	}
	if got := names(s.Take("rdma", "[::1%lo]:20049")); got != "" {
		t.Errorf("took %s twice", got)
	}
	if got := names(s.Take("nfs")); got != "nfs" {
		t.Errorf("took %q", got)
	}
	if err := s.Unknown("rdma", "nfs"); err != nil {
		t.Errorf("a socket that is not served any more: %v", err)
	}
	if _, err := closed.Accept(); err == nil || len(s) != 0 {
		t.Error("it was not closed")
	}
}

func TestASocketWithAnotherNameIsAnError(t *testing.T) {
	s := sockets(t, "http")
	ln := s[0].Listener
	err := s.Unknown("rdma", "nfs")
	if err == nil || !strings.Contains(err.Error(), `"http"`) || !strings.Contains(err.Error(), "rdma, nfs") {
		t.Errorf("got %v", err)
	}
	if _, err := ln.Accept(); err == nil {
		t.Error("it was not closed")
	}
}
