// This file holds who a caller is: the owner of a socket of this machine, or else
// what the credential says, and what squashing leaves of it.

package folder

import (
	"os"
	"slices"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// noID is no user and no group: to the kernel it says that nothing changes.
const noID = 1<<32 - 1

// A creds is an identity to act as.
type creds struct {
	uid, gid uint32
	gids     []uint32

	squashed bool // the caller is somebody else, and may not make files that give rights
}

// identify returns who makes the call. Its error is a *oncrpc.RejectError.
func (s *Server) identify(r *oncrpc.Request) (*creds, error) {
	claim, err := claimOf(&r.Cred)
	if err != nil {
		return nil, err
	}
	from := originOf(r)
	if !s.vol.others() {
		c := s.anonymous()
		c.squashed = s.cfg.Squash != SquashNone && !own(from)
		return c, nil
	}
	return s.squash(actsAs(from, claim)), nil
}

// originOf returns where a call comes from. A transport that does not say leaves the
// address to go by.
func originOf(r *oncrpc.Request) *origin.Origin {
	if r.Origin != nil {
		return r.Origin
	}
	return origin.Of(r.Remote)
}

// claimOf is who a credential says that its sender is, or nil.
func claimOf(cred *oncrpc.OpaqueAuth) (*creds, error) {
	switch cred.Flavor {
	case oncrpc.FlavorNone:
		return nil, nil
	case oncrpc.FlavorSys:
	case oncrpc.FlavorShort:
		// None was handed out: the client goes back to its full credential
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

// actsAs is who a caller is, nil for nobody in particular. On other machines, and as
// root on this one, that is what it claims. Other callers on this machine are the
// users that own their sockets, whatever they claim.
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

// own reports whether a caller is on this machine as the server's user, or as root.
func own(from *origin.Origin) bool {
	return from.Local && from.User != nil && (from.User.UID == 0 || int64(from.User.UID) == int64(os.Geteuid()))
}

// anonymous is nobody in particular.
func (s *Server) anonymous() *creds {
	return &creds{uid: s.cfg.AnonUID, gid: s.cfg.AnonGID, squashed: true}
}

// squash is what Config.Squash leaves of an identity.
func (s *Server) squash(c *creds) *creds {
	if c == nil || s.cfg.Squash == SquashAll {
		return s.anonymous()
	}
	gone := func(id uint32) bool { return id == 0 && s.cfg.Squash == SquashRoot || id == noID }
	if gone(c.uid) {
		c.uid, c.squashed = s.cfg.AnonUID, true
	}
	if gone(c.gid) {
		c.gid, c.squashed = s.cfg.AnonGID, true
	}
	if slices.ContainsFunc(c.gids, gone) {
		c.gids = slices.Clone(c.gids) // they may be the connection's
		for i, g := range c.gids {
			if gone(g) {
				c.gids[i] = s.cfg.AnonGID
			}
		}
	}
	return c
}

// mode is the mode that a caller may set: those squashed may not make files by which
// others become who they are taken for.
func (c *creds) mode(to nfs.SetUint32) uint32 {
	mode := to.Value & nfs.ModeMask
	if c.squashed {
		mode &^= nfs.ModeSetUID | nfs.ModeSetGID
	}
	return mode
}
