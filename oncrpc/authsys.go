// This file holds the body of AUTH_SYS credentials (RFC 5531 Appendix A).

package oncrpc

// Limits of an AUTH_SYS credential.
const (
	MaxMachineName = 255 // octets
	MaxGIDs        = 16
)

// AuthSys identifies a caller as a Unix user. Nothing authenticates it (RFC 5531
// Appendix A, authsys_parms). In octets: 0-3 stamp, 4-7 length of the machine name,
// the name and its roundup, then uid, gid, the number of supplementary gids and
// these, four octets each.
type AuthSys struct {
	Stamp       uint32 // arbitrary
	MachineName string // at most MaxMachineName octets
	UID, GID    uint32 // effective ids
	GIDs        []uint32
}

// Len is the encoded length in octets, at most 340.
func (a *AuthSys) Len() int { return 20 + RoundUp(len(a.MachineName)) + 4*len(a.GIDs) }

// Append appends the body of the credential to dst, for an [OpaqueAuth] of the
// flavor [FlavorSys]. Its only error is of the kind [ErrLimit]; it then returns dst
// unchanged.
func (a *AuthSys) Append(dst []byte) ([]byte, error) {
	e := NewEncoder(dst)
	e.Uint32(a.Stamp)
	e.String(a.MachineName, MaxMachineName)
	e.Uint32(a.UID)
	e.Uint32(a.GID)
	e.Count(len(a.GIDs), MaxGIDs)
	if e.Err() == nil {
		for _, gid := range a.GIDs {
			e.Uint32(gid)
		}
	}
	return e.Finish()
}

// Parse reads the body of a credential of the flavor [FlavorSys]. It reuses the memory
// of a.GIDs, and a.MachineName if that is unchanged, so a server that keeps an AuthSys
// for each connection allocates nothing for most calls.
//
// An error is a [*RejectError] with AUTH_BADCRED that wraps the [*DecodeError]. The
// fields are then zero.
func (a *AuthSys) Parse(body []byte) error {
	d := NewDecoder(body, "AUTH_SYS credential")
	stamp := d.Uint32()
	name := d.Opaque(MaxMachineName)
	uid, gid := d.Uint32(), d.Uint32()
	gids := a.GIDs[:0]
	for range d.Count(MaxGIDs, 4) {
		gids = append(gids, d.Uint32())
	}
	if err := d.End(); err != nil {
		*a = AuthSys{GIDs: gids[:0]}
		return &RejectError{Stat: AuthError, Auth: AuthBadCred, Err: err}
	}
	if a.MachineName != string(name) { // the comparison allocates nothing
		a.MachineName = string(name)
	}
	a.Stamp, a.UID, a.GID, a.GIDs = stamp, uid, gid, gids
	return nil
}
