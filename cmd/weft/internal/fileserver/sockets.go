// This file is sockets that come from the process before, and go to the next one.

package fileserver

import (
	"fmt"
	"net"
	"syscall"

	"github.com/weft-rdma/weft/cmd/weft/internal/service"
)

// Purposes of sockets, by which a service manager names them.
const (
	SocketRDMA    = "rdma"
	SocketNFS     = "nfs"
	SocketPortMap = "portmap"
)

// A Socket is one that the server uses.
type Socket struct {
	Name string // for the process that uses it next
	Conn syscall.Conn
}

// Sockets returns those that the server uses.
func (s *Server) Sockets() []Socket { return s.sockets }

// inherited returns the sockets for a purpose and address that there are already; nil is
// none.
func (s *Server) inherited(purpose, address string) (ln net.Listener, pc net.PacketConn, err error) {
	if s.cfg.Sockets == nil {
		return nil, nil, nil
	}
	all := s.cfg.Sockets.Take(purpose, address)
	for _, one := range all {
		switch {
		case one.Listener != nil && ln == nil:
			ln = one.Listener
		case one.Packet != nil && pc == nil:
			pc = one.Packet
		default:
			err = fmt.Errorf("the service manager passes several sockets with the name %q", purpose)
		}
	}
	if err == nil && ln == nil && pc != nil {
		err = fmt.Errorf("the service manager passes a socket of UDP with the name %q, and none of TCP", purpose)
	}
	if err != nil {
		for _, one := range all {
			one.Close()
		}
		return nil, nil, err
	}
	return ln, pc, nil
}

// inUse notes a socket for the next process. Its name is the address that was asked for,
// because that is what the next one asks for, too.
func (s *Server) inUse(purpose, address string, socket any) {
	if c, ok := socket.(syscall.Conn); ok {
		s.sockets = append(s.sockets, Socket{service.StoredName(purpose, address), c})
	}
}

// HandOver says that another process has the sockets and serves: Shutdown leaves what the
// port mapper of this host knows.
func (s *Server) HandOver() { s.registered = nil }
