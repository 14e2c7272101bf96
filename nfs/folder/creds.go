// This file holds who a caller is: what its credential says, and what squashing
// leaves of it.

package folder

import (
	"github.com/weft-rdma/weft/oncrpc"
)

// noID is no user and no group: to the kernel it says that nothing changes.
const noID = 1<<32 - 1

// A creds is an identity to act as.
type creds struct {
	uid, gid uint32
	gids     []uint32
}

// identify returns who makes the call. Its error is a *oncrpc.RejectError.
func (s *Server) identify(r *oncrpc.Request) (*creds, error) {
	anonymous := &creds{uid: s.cfg.AnonUID, gid: s.cfg.AnonGID}
	switch r.Cred.Flavor {
	case oncrpc.FlavorNone:
		return anonymous, nil
	case oncrpc.FlavorSys:
	case oncrpc.FlavorShort:
		// None was handed out: the client goes back to its full credential
		// (RFC 5531 §8.2, Appendix A).
		return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthRejectedCred}
	default:
		return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}
	}
	var sys oncrpc.AuthSys
	if err := sys.Parse(r.Cred.Body); err != nil {
		return nil, err
	}
	if s.cfg.Squash == SquashAll {
		return anonymous, nil
	}
	c := &creds{uid: sys.UID, gid: sys.GID, gids: sys.GIDs}
	root := s.cfg.Squash == SquashRoot
	if root && c.uid == 0 || c.uid == noID {
		c.uid = anonymous.uid
	}
	if root && c.gid == 0 || c.gid == noID {
		c.gid = anonymous.gid
	}
	for i, g := range c.gids {
		if root && g == 0 || g == noID {
			c.gids[i] = anonymous.gid
		}
	}
	return c, nil
}
