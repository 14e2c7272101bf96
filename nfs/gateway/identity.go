// This file decides as whom callers on this machine call the server: as the owners of
// their sockets. The server trusts this host, and would believe any claim.

package gateway

import (
	"slices"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// withIdentity returns the call with the credential to forward it with: its own, unless
// the caller is on this machine and not root. An error is a *oncrpc.RejectError.
func withIdentity(r *oncrpc.Request) (*oncrpc.Request, error) {
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

// ownCred returns the credential to forward for a caller on this machine who is user, or
// unknown if user is nil. An AUTH_SYS credential becomes that of the user, whose groups the
// caller may choose from, or AUTH_NONE if the user is unknown. Flavors that authenticate
// themselves pass.
func ownCred(user *origin.User, claim *oncrpc.OpaqueAuth) (oncrpc.OpaqueAuth, error) {
	switch claim.Flavor {
	case oncrpc.FlavorNone, oncrpc.FlavorGSS, oncrpc.FlavorDH:
		return *claim, nil
	case oncrpc.FlavorSys:
	case oncrpc.FlavorShort:
		// It could stand for any user. The client falls back to its full credential.
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
	case mayClaim(user, &sys):
		return *claim, nil
	}
	sys.UID, sys.GID = user.UID, user.GID
	sys.GIDs = user.Groups[:min(len(user.Groups), oncrpc.MaxGIDs)]
	body, err := sys.Append(nil)
	return oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorSys, Body: body}, err
}

// mayClaim reports whether the uid and all groups in a claim are the user's.
func mayClaim(user *origin.User, claim *oncrpc.AuthSys) bool {
	has := func(gid uint32) bool { return gid == user.GID || slices.Contains(user.Groups, gid) }
	return claim.UID == user.UID && has(claim.GID) &&
		!slices.ContainsFunc(claim.GIDs, func(gid uint32) bool { return !has(gid) })
}

// clientOf identifies a client whose calls are remembered: by host, and on this machine
// by user.
func clientOf(r *oncrpc.Request) string {
	host := hostOf(r.Remote)
	if from := r.Origin; from != nil && from.User != nil {
		host += " " + from.Share().String()
	}
	return host
}
