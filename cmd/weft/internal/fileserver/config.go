// This file is what a file server is told.

package fileserver

import (
	"fmt"
	"log/slog"
	"net"

	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// A PortMap says how clients find MOUNT.
type PortMap string

// The ways: to own port 111; to register with the port mapper of this host; the
// first of these two that goes; or to leave it to the clients, which can be told
// the port.
const (
	PortMapAuto     PortMap = "auto"
	PortMapOwn      PortMap = "own"
	PortMapRegister PortMap = "register"
	PortMapOff      PortMap = "off"
)

// Set is for flags.
func (p *PortMap) Set(s string) error {
	switch m := PortMap(s); m {
	case PortMapAuto, PortMapOwn, PortMapRegister, PortMapOff:
		*p = m
		return nil
	}
	return fmt.Errorf("expected %s, %s, %s or %s", PortMapAuto, PortMapOwn, PortMapRegister, PortMapOff)
}

func (p *PortMap) String() string { return string(*p) }

// Type is for help texts.
func (p *PortMap) Type() string { return "how" }

// A Config says what to serve, and where.
type Config struct {
	// Handler executes calls that come over connections: NFS in the versions Low
	// to High, MOUNT, and whatever else there is. Mount executes calls of MOUNT that
	// come as datagrams.
	Handler, Mount oncrpc.Handler
	Low, High      uint32

	// NLM says that Handler executes calls of the lock manager, too. The port
	// mapper of the host is not told: that program is its kernel's there.
	NLM bool

	RDMA string // address of NFS over RDMA; "" is none
	TCP  string // address of NFS and MOUNT over TCP, and of MOUNT over UDP; "" is none
	// AnyTCP takes any port if that of TCP is taken.
	AnyTCP  bool
	PortMap PortMap

	// Connections, if not 0, bounds those that are served, over RDMA and TCP together;
	// with both each gets half. There are never more than the function of that name
	// says.
	Connections int

	// Who may use the server: see [mount.Access]. Connections of hosts that may not are
	// reset before anything of theirs is read, and datagrams dropped.
	Allow                           mount.Allow
	Personal, AllowOthers, Insecure bool

	Reverse int // calls to one client over RDMA at a time

	Wrap   func(net.Conn) net.Conn // put around each connection, if not nil
	Logger *slog.Logger
	// Notice is told, in words, what could not be done as asked.
	Notice func(text string)

	look        func(net.Conn) (*origin.Origin, error) // nil is origin.Look
	portMapPort string                                 // to own; "" is 111
	registries  []registryAt                           // port mappers of this host, the best first; nil is the usual ones
}
