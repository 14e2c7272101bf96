// This file holds what a server is told: which folder, who is whom, and limits.

package folder

import (
	"fmt"
	"log/slog"
)

// A Squash says which callers are taken for the anonymous user.
type Squash int

// The choices: the uid and gid 0 (root_squash of exports(5)), all callers
// (all_squash), or none but those without an identity (no_root_squash).
const (
	SquashRoot Squash = iota
	SquashAll
	SquashNone
)

// String is the name of the choice, as exports(5) has it.
func (s Squash) String() string {
	switch s {
	case SquashNone:
		return "no_root_squash"
	case SquashRoot:
		return "root_squash"
	case SquashAll:
		return "all_squash"
	}
	return fmt.Sprintf("squash %d", int(s))
}

// nobody is the anonymous user and group where the configuration names none.
const nobody = 65534

// Limits where the configuration says nothing.
const (
	defaultNames = 1 << 18 // remembered objects, some 400 octets each
	leastNames   = 1 << 10 // so that the way to an object is not forgotten on the way
	defaultOpen  = 8192    // descriptors
)

// A Config says what to serve, and how.
type Config struct {
	// Root is the folder. It may be reached by symbolic links; inside, none is
	// followed.
	Root string

	// ReadOnly makes every change fail with NFS3ERR_ROFS.
	ReadOnly bool

	// Squash, and the anonymous user and group: of those squashed, and of callers
	// without an identity (AUTH_NONE). 0 stands for 65534, "nobody": the
	// anonymous user is never root. Files of those squashed get no set-uid and
	// set-gid bits.
	Squash           Squash
	AnonUID, AnonGID uint32

	// SingleUser has everybody act as the user that the server runs as. It is so
	// anyway when that is not root, or not on Linux. Nobody can be made anonymous
	// then, so New refuses SquashAll, and whoever may not act as that user must not
	// be served: see mount.Access. Callers other than that user and root count as
	// squashed, unless Squash is SquashNone.
	SingleUser bool

	// Async lets replies leave before changes of names and attributes are on disk,
	// and answers no WRITE or COMMIT differently. It is faster, and less than what
	// RFC 1813 §1.5 asks for: a crash of the machine, not of the server, may undo
	// what clients think done.
	Async bool

	// StateDir is a folder of this server's user, outside of Root, for what outlives
	// the process: the key of file handles, 32 random octets in handles.key, from which
	// the handles of each Root are sealed in another way. Folder (mode 0700) and key
	// (0600) are made if there are none; several servers may share them. A key that
	// others may read or exchange is refused: wrong owner or mode, a symbolic link. If
	// the key cannot be kept, as StateDir cannot be written to or is in Root, it is a
	// random one, and [Server.KeyLost] says why.
	//
	// HandleKey, of 16 octets at least and 32 best, is used in its place, for programs
	// that keep it elsewhere. It is a secret: who has it can make handles. With neither,
	// the key is random: handles end with the Server, and clients get NFS3ERR_STALE
	// from the next one.
	StateDir  string
	HandleKey []byte

	// MaxNames is how many objects the server remembers, 1,024 at least: who is
	// forgotten is searched for in the whole folder. MaxOpen is how many
	// descriptors it keeps, at most half of what the process may have, and those
	// that calls in progress use. 0 stands for 262,144 and 8,192.
	MaxNames int
	MaxOpen  int

	// Logger is told of errors of the file system that clients only get a code
	// for. Nil is silence.
	Logger *slog.Logger

	portable bool // the backend of other systems, for tests
}

// fill sets what was left open.
func (c *Config) fill() error {
	if c.Root == "" {
		return fmt.Errorf("folder: no root: say which folder to serve")
	}
	if c.Squash < SquashRoot || c.Squash > SquashNone {
		return fmt.Errorf("folder: %v: want one of the constants", c.Squash)
	}
	if c.MaxNames < 0 || c.MaxOpen < 0 {
		return fmt.Errorf("folder: MaxNames %d, MaxOpen %d: want no negative number", c.MaxNames, c.MaxOpen)
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&c.MaxNames, defaultNames}, {&c.MaxOpen, defaultOpen}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	c.MaxNames = max(c.MaxNames, leastNames)
	if c.AnonUID == 0 {
		c.AnonUID = nobody
	}
	if c.AnonGID == 0 {
		c.AnonGID = nobody
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}
