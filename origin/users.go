// This file is the users of the system and their groups.

package origin

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"sync"
	"time"
)

const (
	// remembered is how long what the system says of a user is believed.
	remembered = 10 * time.Second
	// maxRemembered is of how many users.
	maxRemembered = 1024
)

// users remembers for a while what the system says of users. A look-up may take many
// files, or a directory in the network, and is made while others wait to be accepted.
// Methods may be called by any goroutine.
type users struct {
	lookup func(uid uint32) (*User, error)

	mu    sync.Mutex
	known map[uint32]knownUser
}

type knownUser struct {
	*User
	since time.Time
}

// find returns a user, who is shared with others and must not be changed. Errors are
// not remembered.
func (u *users) find(uid uint32) (*User, error) {
	if found := u.recall(uid); found != nil {
		return found, nil
	}
	begin := time.Now()
	found, err := u.lookup(uid)
	if err != nil {
		return nil, err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.known == nil || len(u.known) >= maxRemembered {
		u.known = make(map[uint32]knownUser)
	}
	u.known[uid] = knownUser{found, begin}
	return found, nil
}

// recall returns a user that was found not long ago, or nil.
func (u *users) recall(uid uint32) *User {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.known[uid]; k.User != nil && time.Since(k.since) < remembered {
		return k.User
	}
	return nil
}

// lookupUser asks the system for a user. Root needs no groups, and one whom the
// system does not know has nobody's.
func lookupUser(uid uint32) (*User, error) {
	if uid == 0 {
		return &User{}, nil
	}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if unknown := user.UnknownUserIdError(0); errors.As(err, &unknown) {
		return &User{UID: uid, GID: nobody, Unknown: true}, nil
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
