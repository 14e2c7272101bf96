// A supervisor, and what it tells its workers.

package service

import "errors"

// A Command is what a supervisor tells a worker.
type Command string

// The commands.
const (
	Interrupt Command = "interrupt" // as SIGINT
	Terminate Command = "terminate" // as SIGTERM
	Reload    Command = "reload"    // as SIGHUP
	Replaced  Command = "replaced"  // as Terminate; another process has the sockets, too
)

// Next waits for the next command of the supervisor. It returns an error if the supervisor
// is gone, and net.ErrClosed after Close.
func (m *Manager) Next() (Command, error) {
	if !m.control {
		return "", errors.New("there is no supervisor")
	}
	var b [64]byte
	n, err := m.conn.Read(b[:])
	return Command(b[:n]), err
}

// Relay passes a notification on, as it is.
func (m *Manager) Relay(text string) error { return m.notify(text) }
