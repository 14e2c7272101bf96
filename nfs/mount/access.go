// This file is who may use a server, at accept and for each call.

package mount

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"runtime"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// An Access says who may use a server, and over which ports. It is asked twice: by
// Admit when a connection was accepted, and by Guard for each call.
//
// Its zero value lets all hosts in, and trusts none of their users with ports from
// 1024 on. Methods may be called by any goroutine.
type Access struct {
	// Allow is the hosts that may; empty is all of them. This machine is a host like
	// others, unless the server is Personal: then Allow is about other machines
	// alone, and empty is none of them.
	Allow Allow

	// Personal says that all callers act as the user of this process, as with a
	// folder.Server that is not run by root on Linux. Callers on this machine may
	// only do so if they are that user, or root.
	Personal bool

	// AllowOthers lets in who is on this machine and neither, and those whose user
	// cannot be told: see [origin.Look].
	AllowOthers bool

	// Insecure takes calls from all ports of other machines. Without it NFS and MNT
	// over TCP and UDP have to come from ports below 1024, which the systems of
	// most machines give to root alone, and so to programs that tell the truth about
	// users. Over RDMA ports say nothing: Linux's client uses any.
	//
	// Ports of callers on this machine are not asked for, as containers have them
	// all: the owner of the socket counts.
	Insecure bool

	// Refused, if not nil, is told of each call that was rejected, and why.
	Refused func(r *oncrpc.Request, why error)

	// Look finds out where a connection comes from, as [origin.Look] does, which
	// stands for nil.
	Look func(net.Conn) (*origin.Origin, error)

	here func(netip.Addr) (bool, error) // for tests; nil is origin.Here
}

// Personal reports whether all callers of a folder.Server in this process act as
// the user of the process.
func Personal() bool { return runtime.GOOS != "linux" || os.Geteuid() != 0 }

// Why callers are refused. What to do about it is up to those who have the Access.
var (
	// ErrHost is about a host that is not in Access.Allow.
	ErrHost = errors.New("its address is not among those that are allowed")

	// ErrUser is about a caller on this machine who is neither the user that it
	// would act as nor root: Access.AllowOthers.
	ErrUser = errors.New("another user of this machine is not allowed")

	// ErrPort is about a port that proves nothing: Access.Insecure.
	ErrPort = errors.New("the port is not below 1024")

	// ErrDatagram is about a datagram of this machine that asks for a handle, or for
	// anything of a server for one user.
	ErrDatagram = errors.New("nobody can tell who on this machine sent a datagram: mount over TCP")
)

// Admit is an [origin.Admit].
func (a *Access) Admit(nc net.Conn) (*origin.Origin, error) {
	look := a.Look
	if look == nil {
		look = origin.Look
	}
	from, err := look(nc)
	if from == nil {
		return nil, err
	}
	if !a.allows(from) {
		return nil, ErrHost // whoever it is
	}
	if err != nil && !a.AllowOthers {
		return nil, err
	}
	return from, nil
}

// AllowsSender reports whether the host that a datagram says to be from may use the
// server. Others are best not answered: addresses of senders prove nothing.
func (a *Access) AllowsSender(remote net.Addr) bool {
	from, err := a.sender(origin.Of(remote))
	return err == nil && a.allows(from)
}

// allows reports whether a host may use the server.
func (a *Access) allows(from *origin.Origin) bool {
	if a.Personal {
		return from.Local || len(a.Allow) > 0 && a.Allow.has(from.Addr.Addr())
	}
	return a.Allow.has(from.Addr.Addr())
}

// Guard is a Handler that lets h execute the calls of those who may make them. To
// others it rejects all calls (AUTH_TOOWEAK), which clients take for an answer, and
// not for something to try again.
func (a *Access) Guard(h oncrpc.Handler) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if err := a.check(r); err != nil {
			if a.Refused != nil {
				a.Refused(r, err)
			}
			return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak, Err: err}
		}
		return h.ServeRPC(ctx, r)
	})
}

// check returns why a call is refused, or nil.
func (a *Access) check(r *oncrpc.Request) error {
	from, err := a.origin(r)
	switch {
	case err != nil:
		return err
	case !a.allows(from):
		return ErrHost
	case from.Local && r.Network == "udp" && (isMnt(r) || a.alone()):
		return ErrDatagram
	case from.Local && a.alone() && !own(from.User):
		return ErrUser
	case !from.Local && !a.Insecure && needsPort(r) && !reserved(from.Addr.Port()):
		return ErrPort
	}
	return nil
}

// alone reports whether no other user of this machine may use the server.
func (a *Access) alone() bool { return a.Personal && !a.AllowOthers }

// origin is where a call comes from.
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

// sender is the origin of a datagram, whose address is all that is known.
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

// reserved reports whether it takes a privilege to call from a port.
func reserved(port uint16) bool { return port != 0 && port < 1024 }

func isMnt(r *oncrpc.Request) bool {
	return r.Prog == nfs.MountProgram && r.Proc == uint32(nfs.MountMnt)
}

// needsPort reports whether a call is judged by its port: those that get at files,
// which is all but the questions of mount helpers and port mappers. NULL is answered
// whatever the program.
func needsPort(r *oncrpc.Request) bool {
	switch {
	case r.Network != "tcp" && r.Network != "udp", r.Proc == 0:
		return false
	case r.Prog == nfs.MountProgram:
		return isMnt(r)
	}
	return r.Prog != oncrpc.PmapProg && r.Prog != nlm.Program
}
