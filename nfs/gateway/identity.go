// This file is who callers on this machine are to the server behind: the owners of
// their sockets. The server trusts this host, and would take their word.

package gateway

import (
	"slices"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// identified returns the call with the credential that it is to be passed on with,
// which is its own unless the caller is on this machine and not root. The error is
// a *oncrpc.RejectError.
func identified(r *oncrpc.Request) (*oncrpc.Request, error) {
	from := r.Origin
	if from == nil || !from.Local || from.User != nil && from.User.UID == 0 {
		return r, nil
	}
	cred, err := ownCred(from.User, &r.Cred)
	if err != nil {
		return nil, err
	}
	own := *r
	own.Cred = cred
	return &own, nil
}

// ownCred is what becomes of a credential of a user's, or of somebody's if user is
// nil: AUTH_SYS is the user, of whose groups the caller may choose, and nobody's
// is none. What proves itself passes.
func ownCred(user *origin.User, claim *oncrpc.OpaqueAuth) (oncrpc.OpaqueAuth, error) {
	switch claim.Flavor {
	case oncrpc.FlavorNone, oncrpc.FlavorGSS, oncrpc.FlavorDH:
		return *claim, nil
	case oncrpc.FlavorSys:
	case oncrpc.FlavorShort:
		// It stands for anybody. The client goes back to its full credential.
		return oncrpc.OpaqueAuth{}, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthRejectedCred}
	default:
		return oncrpc.OpaqueAuth{}, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak}
	}
	var sys oncrpc.AuthSys
	if err := sys.Parse(claim.Body); err != nil {
		return oncrpc.OpaqueAuth{}, err
	}
	switch {
	case user == nil:
		return oncrpc.OpaqueAuth{}, nil
	case mayBe(user, &sys):
		return *claim, nil
	}
	sys.UID, sys.GID = user.UID, user.GID
	sys.GIDs = user.Groups[:min(len(user.Groups), oncrpc.MaxGIDs)]
	body, err := sys.Append(nil)
	return oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: body}, err
}

// mayBe reports whether all that is claimed is the user's.
func mayBe(user *origin.User, claim *oncrpc.AuthSys) bool {
	has := func(gid uint32) bool { return gid == user.GID || slices.Contains(user.Groups, gid) }
	return claim.UID == user.UID && has(claim.GID) &&
		!slices.ContainsFunc(claim.GIDs, func(gid uint32) bool { return !has(gid) })
}

// clientOf tells clients apart whose calls are remembered: by the host, and on this
// machine by the user.
func clientOf(r *oncrpc.Request) string {
	host := hostOf(r.Remote)
	if from := r.Origin; from != nil && from.User != nil {
		host += " " + from.Share().String()
	}
	return host
}
