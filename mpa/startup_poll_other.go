//go:build !linux

package mpa

import "net"

// pollStartup does nothing on this system.
func pollStartup(net.Conn) {}
