// A supervisor, and what it tells its workers.

package service

import (
	"errors"
	"io"
	"net"
)

// A Command is what a supervisor tells a worker.
type Command string

// The commands.
const (
	Interrupt Command = "interrupt" // as SIGINT
	Terminate Command = "terminate" // as SIGTERM, and if the supervisor is gone
	Reload    Command = "reload"    // as SIGHUP
	Replaced  Command = "replaced"  // as Terminate; another process has the sockets, too
)

// Next waits for the next command of the supervisor. Without a supervisor it returns an
// error.
func (m *Manager) Next() (Command, error) {
	if !m.control {
		return "", errors.New("there is no supervisor")
	}
	var b [64]byte
	n, err := m.conn.Read(b[:])
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return Terminate, err
	}
	return Command(b[:n]), err
}

// Relay passes a notification on, as it is.
func (m *Manager) Relay(text string) error { return m.notify(text) }
