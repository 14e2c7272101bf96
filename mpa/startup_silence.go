// This file looks for octets behind a Request. Until the Reply the Initiator
// does not know how to frame, so that octets there mean that PD_Length does
// not match the Private Data (RFC 5044 §7.1.1).

package mpa

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/socket"
)

// glance is how long a connection without a file descriptor is looked at.
const glance = time.Millisecond

// checkSilence returns an *Error with CodeStartup if nc has an octet to read,
// io.EOF if the peer has ended its half, and nil if it is silent.
func checkSilence(nc net.Conn) error {
	if sc, ok := nc.(syscall.Conn); ok {
		if rc, err := sc.SyscallConn(); err == nil {
			if n, err := socket.Peek(rc); err != errors.ErrUnsupported {
				return silence(n, err)
			}
		}
	}
	// An octet read here is lost, and with it nothing: nc is closed then.
	err := nc.SetReadDeadline(time.Now().Add(glance))
	if err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, io.ErrClosedPipe) {
		return nil // there are no deadlines, and so no way to look without waiting
	}
	defer nc.SetReadDeadline(time.Time{})
	n, err := nc.Read(make([]byte, 1))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = nil
	}
	return silence(n, err)
}

func silence(n int, err error) error {
	if n > 0 {
		return startupError("octets behind the Request and before the Reply")
	}
	return err
}
