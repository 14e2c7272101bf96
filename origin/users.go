// The users of the system and their groups.

package origin

import (
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/panics"
)

const (
	// remembered is how long a user is cached.
	remembered = 10 * time.Second
	// maxRemembered is how many users are cached.
	maxRemembered = 1024

	// maxWait bounds how long a caller waits for a look-up, from its start on. While one
	// takes longer, no caller waits longer than shortWait, which is enough for files.
	maxWait   = time.Second
	shortWait = 50 * time.Millisecond

	// maxLookups bounds the look-ups under way. One that hangs occupies a thread.
	maxLookups = 16
)

// users is a cache of the system's users. Looking one up may read many files, or ask a
// directory server that does not answer, while other connections wait to be accepted.
// Each look-up runs in a goroutine of its own, and its callers wait for it only so long.
// Methods may be called by any goroutine.
type users struct {
	lookup func(uid uint32) (*User, error)

	mu      sync.Mutex
	known   map[uint32]knownUser
	running map[uint32]*lookup
}

type knownUser struct {
	*User
	since time.Time
}

// A lookup is one under way.
type lookup struct {
	begun time.Time
	done  chan struct{} // closed when user and err are set
	user  *User
	err   error
}

// find returns a user, which is shared and must not be changed. Errors are not cached. A look-up that takes too long goes on, and its result is remembered.
func (u *users) find(uid uint32) (*User, error) {
	if uid == 0 {
		return u.lookup(0) // nobody is asked for root
	}
	if found := u.recall(uid); found != nil {
		return found, nil
	}
	l, wait := u.join(uid)
	if l == nil {
		return nil, fmt.Errorf("looking up uid %d: %d look-ups of users are under way already", uid, maxLookups)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-l.done:
		return l.user, l.err
	case <-timer.C:
		return nil, fmt.Errorf("looking up uid %d: the system's user database does not answer", uid)
	}
}

// join returns the look-up of a user, which it starts if none is under way, and how long
// to wait for it. It returns nil if too many are.
func (u *users) join(uid uint32) (l *lookup, wait time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	wait = maxWait
	for _, other := range u.running {
		if now.Sub(other.begun) >= maxWait {
			wait = shortWait
		}
	}
	if l = u.running[uid]; l != nil {
		return l, min(wait, maxWait-now.Sub(l.begun))
	}
	if len(u.running) >= maxLookups {
		return nil, 0
	}
	l = &lookup{begun: now, done: make(chan struct{})}
	if u.running == nil {
		u.running = make(map[uint32]*lookup)
	}
	u.running[uid] = l
	go u.run(uid, l)
	return l, wait
}

// run makes a look-up, and remembers what it finds.
func (u *users) run(uid uint32, l *lookup) {
	defer panics.Recover()
	l.user, l.err = u.lookup(uid)
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.running, uid)
	if l.err == nil {
		if u.known == nil || len(u.known) >= maxRemembered {
			u.known = make(map[uint32]knownUser)
		}
		u.known[uid] = knownUser{l.user, l.begun}
	}
	close(l.done)
}

// recall returns a user from the cache, or nil.
func (u *users) recall(uid uint32) *User {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.known[uid]; k.User != nil && time.Since(k.since) < remembered {
		return k.User
	}
	return nil
}

// lookupUser asks the system for a user. Root needs no groups; a user that the system
// does not know has none.
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

// userOf makes a User from the system's answer. The primary group may be in the list of
// groups, and is not a supplementary one.
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
