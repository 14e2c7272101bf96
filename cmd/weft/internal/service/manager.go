// The Manager, and the variables of the environment by which it makes itself known.

package service

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// firstSocket is the descriptor of the first socket (SD_LISTEN_FDS_START).
const firstSocket = 3

// ControlVariable names the descriptor that connects a worker with its supervisor. It is
// used in place of NOTIFY_SOCKET, and in the other direction for commands.
const ControlVariable = "WEFT_CONTROL"

// A Manager has started this process. Without one there are no sockets, and nothing is
// said to anybody. Its methods may be called by any goroutine.
type Manager struct {
	// Sockets are those that the manager has opened.
	Sockets Sockets
	// Watchdog is how often the manager wants to hear Alive; 0 is never.
	Watchdog time.Duration

	conn    *net.UnixConn // for notifications; nil is nowhere
	control bool          // conn is that of a supervisor
}

// An environment is where the variables are.
type environment struct {
	get   func(string) string
	unset func(string) error
	pid   int
	ppid  int
	first int // descriptor of sockets
}

// Open returns the manager that the environment speaks of. It removes the variables, which
// are for this process only.
func Open() (*Manager, error) {
	return open(&environment{os.Getenv, os.Unsetenv, os.Getpid(), os.Getppid(), firstSocket})
}

func open(env *environment) (m *Manager, err error) {
	m = new(Manager)
	defer func() {
		for _, name := range []string{ControlVariable, "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"} {
			err = errors.Join(err, env.unset(name))
		}
		if err != nil {
			m.Close()
			m = nil
		}
	}()
	if err := m.connect(env); err != nil {
		return m, err
	}
	if m.Watchdog, err = env.watchdog(m.control); err != nil {
		return m, err
	}
	m.Sockets, err = env.sockets(m.control)
	return m, err
}

// connect opens the connection for notifications.
func (m *Manager) connect(env *environment) error {
	if v := env.get(ControlVariable); v != "" {
		fd, err := strconv.Atoi(v)
		if err != nil || fd < firstSocket {
			return fmt.Errorf("%s=%s: expected the number of a descriptor", ControlVariable, v)
		}
		m.control = true
		m.conn, err = connOf(fd, "control")
		return err
	}
	path := env.get("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	// A leading @ stands for the abstract namespace, in package net, too.
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("cannot notify the service manager: %w", err)
	}
	m.conn = conn
	return nil
}

// connOf returns the connection of a descriptor, which it closes.
func connOf(fd int, name string) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	uc, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, fmt.Errorf("descriptor %d: it is no socket of Unix", fd)
	}
	return uc, nil
}

// watchdog returns how often to be heard: twice in the time that the manager waits.
func (env *environment) watchdog(control bool) (time.Duration, error) {
	v := env.get("WATCHDOG_USEC")
	if v == "" || !control && env.get("WATCHDOG_PID") != "" && !is(env.get("WATCHDOG_PID"), env.pid) {
		return 0, nil
	}
	us, err := strconv.ParseUint(v, 10, 63)
	if err != nil || us == 0 || us > uint64(time.Duration(1<<63-1)/time.Microsecond) {
		return 0, fmt.Errorf("WATCHDOG_USEC=%s: expected microseconds", v)
	}
	return max(time.Duration(us)*time.Microsecond/2, time.Millisecond), nil
}

// is reports whether a variable has the number n.
func is(v string, n int) bool {
	got, err := strconv.Atoi(v)
	return err == nil && got == n
}

// Supervised reports whether the manager is a supervisor of this command.
func (m *Manager) Supervised() bool { return m.control }

// Close closes the connection and the sockets that nobody has used.
func (m *Manager) Close() error {
	err := m.Sockets.Close()
	if m.conn != nil {
		err = errors.Join(err, m.conn.Close())
	}
	return err
}
