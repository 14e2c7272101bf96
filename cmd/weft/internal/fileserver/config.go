// The configuration of a file server.

package fileserver

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"

	"github.com/weft-rdma/weft/cmd/weft/internal/service"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// A PortMap says how clients find MOUNT.
type PortMap string

// Own listens on port 111. Register registers with the port mapper of this host. Auto
// tries these two in turn. With off clients have to be given the port.
const (
	PortMapAuto     PortMap = "auto"
	PortMapOwn      PortMap = "own"
	PortMapRegister PortMap = "register"
	PortMapOff      PortMap = "off"
)

// Set implements pflag.Value.
func (p *PortMap) Set(s string) error {
	switch m := PortMap(s); m {
	case PortMapAuto, PortMapOwn, PortMapRegister, PortMapOff:
		*p = m
		return nil
	}
	return fmt.Errorf("expected %s, %s, %s or %s", PortMapAuto, PortMapOwn, PortMapRegister, PortMapOff)
}

func (p *PortMap) String() string { return string(*p) }

// Type implements pflag.Value.
func (p *PortMap) Type() string { return "how" }

// A Config says what a file server serves, and where.
type Config struct {
	// Exports, if there are some, are served in place of Handler, Mount, Low and High. See
	// RulesOf for what is below. Unmarked says that there is one, whose handles are those of
	// a file server without a configuration file.
	Exports  []Export
	Unmarked bool

	// Handler executes calls that come over connections: NFS in the versions Low
	// to High, MOUNT, and whatever else there is. Mount executes calls of MOUNT that
	// come as datagrams.
	Handler, Mount oncrpc.Handler
	Low, High      uint32

	// NLM says that Handler executes calls of the lock manager, too. It is not
	// registered with the port mapper of the host: that program is its kernel's there.
	NLM bool

	RDMA string // address of NFS over RDMA; "" is none
	TCP  string // address of NFS and MOUNT over TCP, and of MOUNT over UDP; "" is none
	// FurtherRDMA and FurtherTCP are addresses beside RDMA and TCP.
	FurtherRDMA, FurtherTCP []string
	// AnyTCP uses any port if the one in TCP is in use.
	AnyTCP  bool
	PortMap PortMap

	// Sockets, if not nil, has sockets that are used in place of new ones: with the names
	// SocketRDMA, SocketNFS (TCP, and UDP for MOUNT) and SocketPortMap.
	Sockets *service.Sockets

	// Connections, if not 0, limits the connections over RDMA and TCP together; each
	// transport gets half if both are used. The function of that name gives the upper
	// limit.
	Connections int

	// Who may use the server: see [mount.Access]. Connections of other hosts are reset
	// before anything is read from them, and their datagrams are dropped.
	Allow                           mount.Allow
	Names                           []origin.Name
	Personal, AllowOthers, Insecure bool

	// StartTLS, if not nil, offers TLS to clients of NFS over TCP that ask for it (RFC
	// 9289). XprtSec says which security connections of NFS may have, over any transport;
	// see [mount.Access].
	StartTLS *tls.Config
	XprtSec  mount.XprtSec

	// Observe, if not nil, wraps the handler of all calls of NFS, MOUNT and the port
	// mapper, around the checks of who may call.
	Observe func(oncrpc.Handler) oncrpc.Handler

	// Exported, if not nil, is called with the names of the exports, at the start and when
	// they have changed, and with a function that returns the export of a call, "" for none.
	Exported func(names []string, of func(*oncrpc.Request) string)

	Reverse int // calls to one client over RDMA at a time

	TLS    *tls.Config             // encrypts RDMA connections, if not nil
	Wrap   func(net.Conn) net.Conn // put around each connection, if not nil
	Logger *slog.Logger
	// Notice receives a text about whatever could not be done as requested.
	Notice func(text string)

	look        func(net.Conn) (*origin.Origin, error) // nil is origin.Look
	portMapPort string                                 // to own; "" is 111
	descriptors int                                    // 0 is what the system allows
	registries  []registryAt                           // port mappers of this host, the best first; nil is the usual ones
}
