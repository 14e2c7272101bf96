// Notifications: datagrams of lines NAME=VALUE (sd_notify(3)).

package service

import (
	"fmt"
	"strings"
	"time"
)

// Ready says that the command serves, at the start or after Reloading.
func (m *Manager) Ready(status string) error { return m.notify("READY=1", statusLine(status)) }

// Reloading says that the command reads its configuration again. Ready ends that.
func (m *Manager) Reloading() error {
	return m.notify("RELOADING=1", fmt.Sprintf("MONOTONIC_USEC=%d", monotonic().Microseconds()))
}

// Stopping says that the command ends.
func (m *Manager) Stopping(status string) error { return m.notify("STOPPING=1", statusLine(status)) }

// Status is a line for humans.
func (m *Manager) Status(text string) error { return m.notify(statusLine(text)) }

// Alive answers the watchdog.
func (m *Manager) Alive() error { return m.notify("WATCHDOG=1") }

// KeepAlive calls alive, and then Alive, as often as the watchdog wants, until stop is
// closed. It returns at once if there is no watchdog.
func (m *Manager) KeepAlive(stop <-chan struct{}, alive func()) {
	if m.Watchdog == 0 {
		return
	}
	tick := time.NewTicker(m.Watchdog)
	defer tick.Stop()
	for {
		alive()
		_ = m.Alive() // the manager will notice
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

func statusLine(text string) string {
	return "STATUS=" + strings.ReplaceAll(text, "\n", " ")
}

// notify sends lines.
func (m *Manager) notify(lines ...string) error {
	if m.conn == nil {
		return nil
	}
	if _, err := m.conn.Write([]byte(strings.Join(lines, "\n"))); err != nil {
		return fmt.Errorf("cannot notify the service manager: %w", err)
	}
	return nil
}
