// This file decides who may use a server: when a connection is accepted, and for each
// call.

package mount

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// An Access says who may use a server, and from which ports. Admit applies it to each
// accepted connection, and Guard to each call.
//
// The zero value allows all hosts, and requires ports below 1024 for calls that access
// files. Methods may be called by any goroutine.
type Access struct {
	// Allow lists the hosts that may use the server; an empty list allows all. It
	// covers this machine like any other host, unless the server is Personal. Then it
	// is about other machines only, and an empty list allows none of them.
	Allow Allow

	// Names lists peers that may use the server, too, by the certificates that they
	// present over TLS, from any address and port. With Names an empty Allow allows no host
	// by its address. Connections of every address are then admitted, as TLS begins
	// later, and so are calls of NULL, MOUNT and the port mapper, which Linux's client
	// makes in the clear before.
	Names []origin.Name

	// Personal says that all callers act as the user of this process, as with a
	// folder.Server that does not run as root on Linux. Of the callers on this
	// machine, only that user and root may then use the server.
	Personal bool

	// AllowOthers allows the other users of this machine, too, and callers on this
	// machine whose user is unknown: see [origin.Look].
	AllowOthers bool

	// Insecure accepts calls from all ports of other machines. Without it, NFS calls
	// and MNT over TCP and UDP have to come from ports below 1024. Most systems give
	// those to root only, and so to programs that state the caller's user truthfully.
	// Over RDMA the port means nothing: Linux's client uses any.
	//
	// The ports of callers on this machine are not checked, as any container may use
	// all of them. The owner of the caller's socket counts instead.
	Insecure bool

	// XprtSec says which transport layer security connections of NFS may have: the
	// protection by TLS under RPC, whatever the transport (RFC 9289 §5.1). Calls of MOUNT
	// and NULL need none.
	XprtSec XprtSec

	// Refused, if not nil, is called for each rejected call, with the reason.
	Refused func(r *oncrpc.Request, why error)

	// Look returns the origin of a connection. Nil stands for [origin.Look].
	Look func(net.Conn) (*origin.Origin, error)

	here func(netip.Addr) (bool, error) // for tests; nil stands for origin.Here
}

// Personal reports whether all callers of a folder.Server in this process act as
// the user of the process.
func Personal() bool { return runtime.GOOS != "linux" || os.Geteuid() != 0 }

// Reasons to refuse a caller. A program adds which of its options allows the caller.
var (
	// ErrHost: the host is not in Access.Allow.
	ErrHost = errors.New("its address is not among those that are allowed")

	// ErrName: nor is a name of its certificate in Access.Names. It is an ErrHost, too.
	ErrName = fmt.Errorf("it has presented no certificate with a name that is allowed, and %w", ErrHost)

	// ErrUser: the caller is on this machine, and is neither the user that it would
	// act as nor root. See Access.AllowOthers.
	ErrUser = errors.New("another user of this machine is not allowed")

	// ErrPort: the port is not a privileged one. See Access.Insecure.
	ErrPort = errors.New("the port is not below 1024")

	// ErrDatagram: a datagram from this machine asks for a handle, or for anything of
	// a server for one user.
	ErrDatagram = errors.New("the sender of a datagram on this machine is unknown; mount over TCP")
)

// Admit decides whether to serve a connection. It is an [origin.Admit].
func (a *Access) Admit(nc net.Conn) (*origin.Origin, error) {
	look := a.Look
	if look == nil {
		look = origin.Look
	}
	from, err := look(nc)
	if from == nil {
		return nil, err
	}
	if len(a.Names) == 0 && !a.allows(from) {
		return nil, ErrHost // for every user
	}
	if err != nil && !a.AllowOthers {
		return nil, err
	}
	return from, nil
}

// AllowsSender reports whether the host that a datagram claims to come from may use the
// server. A server should not answer others, because sender addresses can be forged.
func (a *Access) AllowsSender(remote net.Addr) bool {
	from, err := a.sender(origin.Of(remote))
	return err == nil && (len(a.Names) > 0 || a.allows(from))
}

// allows reports whether a host may use the server.
func (a *Access) allows(from *origin.Origin) bool {
	if len(a.Names) > 0 {
		return from.Names(a.Names) || a.Personal && from.Local || len(a.Allow) > 0 && a.Allow.has(from.Addr.Addr())
	}
	if a.Personal {
		return from.Local || len(a.Allow) > 0 && a.Allow.has(from.Addr.Addr())
	}
	return a.Allow.has(from.Addr.Addr())
}

// Guard returns a Handler that passes allowed calls to h, and rejects all others with
// AUTH_TOOWEAK, which clients do not retry.
func (a *Access) Guard(h oncrpc.Handler) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if err := a.Check(r); err != nil {
			return nil, err
		}
		return h.ServeRPC(ctx, r)
	})
}

// Check returns nil for a call that is allowed, and else the *[oncrpc.RejectError] that
// Guard rejects it with.
func (a *Access) Check(r *oncrpc.Request) error {
	err := a.check(r)
	if err == nil {
		return nil
	}
	if a.Refused != nil {
		a.Refused(r, err)
	}
	return &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak, Err: err}
}

// check returns why a call is refused, or nil.
func (a *Access) check(r *oncrpc.Request) error {
	from, err := a.origin(r)
	switch {
	case err != nil:
		return err
	case !a.allows(from) && (len(a.Names) == 0 || accessesFiles(r)):
		return a.hostError()
	case from.Local && r.Network == "udp" && (isMnt(r) || a.alone()):
		return ErrDatagram
	case from.Local && a.alone() && !own(from.User):
		return ErrUser
	case !from.Local && !a.Insecure && needsPort(r) && !from.Names(a.Names) && !reserved(from.Addr.Port()):
		return ErrPort
	case accessesFiles(r) && !a.XprtSec.Has(from.Security()):
		return ErrSecurity
	}
	return nil
}

// hostError returns the error for a host that is not allowed.
func (a *Access) hostError() error {
	if len(a.Names) > 0 {
		return ErrName
	}
	return ErrHost
}

// alone reports whether this process's user is the only one that may use the server.
func (a *Access) alone() bool { return a.Personal && !a.AllowOthers }

// origin returns where a call comes from.
func (a *Access) origin(r *oncrpc.Request) (*origin.Origin, error) {
	from := r.Origin
	if from == nil {
		from = origin.Of(r.Remote)
	}
	if r.Network != "udp" {
		return from, nil
	}
	return a.sender(from)
}

// sender returns the origin of a datagram, of which only the address is known.
func (a *Access) sender(from *origin.Origin) (*origin.Origin, error) {
	if from.Local || !from.Addr.IsValid() {
		return from, nil
	}
	here := a.here
	if here == nil {
		here = origin.Here
	}
	local, err := here(from.Addr.Addr())
	return &origin.Origin{Addr: from.Addr, Local: local}, err
}

// own reports whether a user of this machine may act as this process.
func own(u *origin.User) bool {
	return u != nil && (u.UID == 0 || int64(u.UID) == int64(os.Geteuid()))
}

// reserved reports whether only privileged processes may use a port.
func reserved(port uint16) bool { return port != 0 && port < 1024 }

func isMnt(r *oncrpc.Request) bool {
	return r.Prog == nfs.MountProgram && r.Proc == uint32(nfs.MountMnt)
}

// needsPort reports whether a call has to come from a reserved port: if it gives access
// to files. Other calls of MOUNT, calls of the port mapper and of NLM, and NULL of any
// program need not.
func needsPort(r *oncrpc.Request) bool {
	switch {
	case r.Network != "tcp" && r.Network != "udp", r.Proc == 0:
		return false
	case r.Prog == nfs.MountProgram:
		return isMnt(r)
	}
	return r.Prog != oncrpc.PmapProg && r.Prog != nlm.Program
}
