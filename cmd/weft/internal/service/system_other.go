//go:build !linux

// Systems without systemd.

package service

import (
	"os"
	"syscall"
	"time"
)

var began = time.Now()

func monotonic() time.Duration { return time.Since(began) }

func listens(*os.File) error { return nil }

// Store does nothing: there is no supervisor.
func (m *Manager) Store(string, syscall.Conn) error { return nil }
