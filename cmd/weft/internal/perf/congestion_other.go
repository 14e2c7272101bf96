//go:build !linux

package perf

import (
	"errors"
	"net"
)

// setCongestion refuses every name but the empty one: only Linux lets a socket
// choose.
func setCongestion(_ *net.TCPConn, name string) error {
	if name != "" {
		return errors.New("the congestion control can be chosen on Linux only: leave out --congestion")
	}
	return nil
}

// congestion would name the congestion control.
func congestion(*net.TCPConn) string { return "" }
