// This file finds the identity of a caller: the owner of its socket on this machine, or what
// its credential claims; and then applies squashing.

package folder

import (
	"os"
	"slices"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// noID is not a valid uid or gid. For the kernel it means no change.
const noID = 1<<32 - 1

// A creds is an identity that operations act as.
type creds struct {
	uid, gid uint32
	gids     []uint32

	squashed bool // not the caller's own identity: it must not make set-uid or set-gid files
}

// identify returns the identity of a call. An error is a *oncrpc.RejectError.
func (s *Server) identify(r *oncrpc.Request) (*creds, error) {
	claim, err := claimOf(&r.Cred)
	if err != nil {
		return nil, err
	}
	from := originOf(r)
	if !s.vol.perCaller() {
		c := s.anonymous()
		c.squashed = s.squashOf(from) != SquashNone && !own(from)
		return c, nil
	}
	return s.squash(actsAs(from, claim), s.squashOf(from)), nil
}

// squashOf returns the squash of a caller.
func (s *Server) squashOf(from *origin.Origin) Squash {
	for _, special := range s.rules.Load().SquashFor {
		if from.Names([]origin.Name{special.Name}) {
			return special.Squash
		}
	}
	return s.rules.Load().Squash
}

// originOf returns where a call comes from. If the transport does not say, it goes by the
// address.
func originOf(r *oncrpc.Request) *origin.Origin {
	if r.Origin != nil {
		return r.Origin
	}
	return origin.Of(r.Remote)
}

// claimOf returns the identity that a credential claims, or nil if it claims none.
func claimOf(cred *oncrpc.OpaqueAuth) (*creds, error) {
	switch cred.Flavor {
	case oncrpc.FlavorNone:
		return nil, nil
	case oncrpc.FlavorSys:
	case oncrpc.FlavorShort:
		// The server has handed out none. The client falls back to its full credential
		// (RFC 5531 §8.2, Appendix A).
		return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthRejectedCred}
	default:
		return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}
	}
	var sys oncrpc.AuthSys
	if err := sys.Parse(cred.Body); err != nil {
		return nil, err
	}
	return &creds{uid: sys.UID, gid: sys.GID, gids: sys.GIDs}, nil
}

// actsAs returns the identity of a caller before squashing, or nil if it is unknown. The
// claim counts on other machines, and for root of this machine. Other callers on this
// machine are the owners of their sockets.
func actsAs(from *origin.Origin, claim *creds) *creds {
	switch {
	case !from.Local:
		return claim
	case from.User == nil:
		return nil
	case from.User.UID == 0:
		return claim
	}
	return &creds{
		uid: from.User.UID, gid: from.User.GID, gids: from.User.Groups,
		squashed: from.User.Unknown, // the group is not its own
	}
}

// own reports whether a caller is on this machine as the server's user or as root.
func own(from *origin.Origin) bool {
	return from.Local && from.User != nil && (from.User.UID == 0 || int64(from.User.UID) == int64(os.Geteuid()))
}

// anonymous returns the anonymous identity.
func (s *Server) anonymous() *creds {
	return &creds{uid: s.rules.Load().AnonUID, gid: s.rules.Load().AnonGID, squashed: true}
}

// squash applies a squash to an identity.
func (s *Server) squash(c *creds, how Squash) *creds {
	if c == nil || how == SquashAll {
		return s.anonymous()
	}
	gone := func(id uint32) bool { return id == 0 && how == SquashRoot || id == noID }
	if gone(c.uid) {
		c.uid, c.squashed = s.rules.Load().AnonUID, true
	}
	if gone(c.gid) {
		c.gid, c.squashed = s.rules.Load().AnonGID, true
	}
	if slices.ContainsFunc(c.gids, gone) {
		c.gids = slices.Clone(c.gids) // they may belong to the connection
		for i, g := range c.gids {
			if gone(g) {
				c.gids[i] = s.rules.Load().AnonGID
			}
		}
	}
	return c
}

// mode returns the mode that a caller may set. Squashed callers must not make files with
// which others could act as the squashed identity.
func (c *creds) mode(to nfs.SetUint32) uint32 {
	mode := to.Value & nfs.ModeMask
	if c.squashed {
		mode &^= nfs.ModeSetUID | nfs.ModeSetGID
	}
	return mode
}
