// This file holds the configuration of a server.

package folder

import (
	"fmt"
	"log/slog"

	"github.com/weft-rdma/weft/origin"
)

// A Squash says which callers become the anonymous user.
type Squash int

// The choices of exports(5): callers with uid or gid 0 (root_squash), all callers
// (all_squash), or only those without an identity (no_root_squash).
const (
	SquashRoot Squash = iota
	SquashAll
	SquashNone
)

// String returns the option of exports(5).
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

// nobody is the default anonymous user and group.
const nobody = 65534

// Default limits.
const (
	defaultNames = 1 << 18 // remembered objects, some 400 octets each
	minNames     = 1 << 10 // enough for the path to an object while it is being opened
	defaultOpen  = 8192    // descriptors
)

// A SquashFor is the Squash of callers whose connection is encrypted by TLS, and who have
// presented a verified certificate with this name.
type SquashFor struct {
	Name   origin.Name
	Squash Squash
}

// A Config says what to serve, and how.
type Config struct {
	// Root is the directory to serve. Its path may contain symbolic links; below it none
	// is followed.
	Root string

	// ReadOnly refuses every change with NFS3ERR_ROFS.
	ReadOnly bool

	// Squash says which callers are anonymous; callers without an identity (AUTH_NONE)
	// always are. AnonUID and AnonGID are the anonymous user and group. 0 stands for
	// 65534, "nobody", so the anonymous user is never root. Squashed callers cannot set
	// set-uid and set-gid bits.
	Squash           Squash
	AnonUID, AnonGID uint32

	// SquashFor has other choices for callers by the names in their certificates. The
	// first that matches counts.
	SquashFor []SquashFor

	// SingleUser makes all callers act as the user of the server. That is always so if
	// the server does not run as root, or not on Linux. Callers cannot be made anonymous
	// then: New refuses SquashAll, and callers who may not act as that user must be kept
	// out (see mount.Access). Callers other than that user and root count as squashed,
	// unless Squash is SquashNone.
	SingleUser bool

	// Async sends replies before changes of names and attributes are on disk. WRITE and
	// COMMIT are not affected. That is faster, and less than RFC 1813 §1.5 requires: a
	// crash of the machine, though not of the server, may undo completed changes.
	Async bool

	// StateDir is a directory outside of Root, owned by the server's user, for the key of
	// file handles: 32 random octets in handles.key. The directory (mode 0700) and the key (0600) are
	// created if they do not exist. Several servers may share them; each Root derives its
	// own key. New refuses a key that others may read or replace: with the wrong owner or
	// mode, or a symbolic link. If the key cannot be saved, because StateDir is not writable
	// or is in Root, the key is random, and [Server.KeyLost] says why.
	//
	// HandleKey, if not empty, is used instead, for programs that keep the key elsewhere. It
	// has at least 16 octets, preferably 32, and is secret: it makes handles. With neither,
	// the key is random. The handles of a random key end with the Server; the next one
	// answers them with NFS3ERR_STALE.
	StateDir  string
	HandleKey []byte

	// Mark is in all handles, in their octets 1 to 3 (see [MarkOf]), so that a program
	// that serves several exports finds that of a handle. Handles with another mark are
	// NFS3ERR_STALE. At most 0xffffff.
	Mark uint32

	// MaxNames bounds the objects that the server remembers; at least 1,024. To find a
	// forgotten one, it searches the whole export. MaxOpen bounds the descriptors that it
	// keeps besides those that calls in progress use, to at most half of the process's
	// limit. 0 stands for 262,144 and 8,192.
	MaxNames int
	MaxOpen  int

	// Logger logs file system errors, of which clients get a status only; nil discards.
	Logger *slog.Logger

	portable bool // the backend of other systems, for tests
}

// fill checks c and sets defaults.
func (c *Config) fill() error {
	if c.Root == "" {
		return fmt.Errorf("folder: Config.Root is empty; it must name the directory to serve")
	}
	for _, s := range append([]SquashFor{{Squash: c.Squash}}, c.SquashFor...) {
		if s.Squash < SquashRoot || s.Squash > SquashNone {
			return fmt.Errorf("folder: %v: expected one of the constants", s.Squash)
		}
	}
	if c.Mark > maxMark {
		return fmt.Errorf("folder: Mark %#x: expected at most %#x", c.Mark, maxMark)
	}
	if c.MaxNames < 0 || c.MaxOpen < 0 {
		return fmt.Errorf("folder: MaxNames %d, MaxOpen %d: expected no negative number", c.MaxNames, c.MaxOpen)
	}
	for _, f := range []struct {
		field *int
		value int
	}{{&c.MaxNames, defaultNames}, {&c.MaxOpen, defaultOpen}} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	c.MaxNames = max(c.MaxNames, minNames)
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
