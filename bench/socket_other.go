//go:build !linux

// What is missing of Linux's sockets elsewhere.

package main

import (
	"errors"
	"io"
	"net"
)

// defaultCongestion "" leaves the system's.
const defaultCongestion = ""

// canSpin reports whether spinReader works here. It does not: there are no
// comparisons of polling ends.
func canSpin() bool { return false }

func newSpinReader(*net.TCPConn) (io.Reader, error) {
	return nil, errors.New("polling a socket is not supported on this system")
}
