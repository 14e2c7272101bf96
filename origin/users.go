// This file is the users of the system and their groups.

package origin

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
)

// lookupUser asks the system for a user. Root needs no groups, and one whom the
// system does not know has nobody's.
func lookupUser(uid uint32) (*User, error) {
	if uid == 0 {
		return &User{}, nil
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
		return &User{UID: uid, GID: nobody}, nil
	} else if err != nil {
		return nil, fmt.Errorf("looking up uid %d: %w", uid, err)
	}
	gids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("looking up the groups of uid %d: %w", uid, err)
	}
	return userOf(uid, u.Gid, gids)
}

// userOf makes a User of what the system says. The list of groups may have the
// primary one, which is no supplementary one.
func userOf(uid uint32, gid string, gids []string) (*User, error) {
	primary, err := strconv.ParseUint(gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("the group %q of uid %d is not a number", gid, uid)
	}
	u := &User{UID: uid, GID: uint32(primary)}
	for _, g := range gids {
		n, err := strconv.ParseUint(g, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("the group %q of uid %d is not a number", g, uid)
		}
		if uint32(n) != u.GID {
			u.Groups = append(u.Groups, uint32(n))
		}
	}
	return u, nil
}
