// This file is who may use a file server, and what is said of those who may not.

package fileserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// access is who may use the server, as c has it.
func (c *Config) access() *mount.Access {
	log := &refusals{log: c.Logger, told: make(map[origin.Share]int)}
	return &mount.Access{
		Allow: c.Allow, Personal: c.Personal, AllowOthers: c.AllowOthers, Insecure: c.Insecure, Look: c.look,
		Refused: func(r *oncrpc.Request, why error) { log.tell(r.Origin, r.Remote, advised(why)) },
	}
}

// admit is access.Admit with an error that says what to do.
func (s *Server) admit(nc net.Conn) (*origin.Origin, error) {
	from, err := s.access.Admit(nc)
	return from, advised(err)
}

// advised says which flag lets a caller in that was refused.
func advised(err error) error {
	for _, a := range []struct {
		err  error
		what string
	}{
		{mount.ErrHost, "--allow lets it in"},
		{mount.ErrUser, "--allow-others lets it in"},
		{origin.ErrOwner, "--allow-others lets it in"},
		{mount.ErrPort, "--insecure takes calls from any"},
	} {
		if errors.Is(err, a.err) {
			return fmt.Errorf("%w; %s", err, a.what)
		}
	}
	return err
}

// How many refusals are told of in each time, of one origin and of all.
const (
	tellEach  = 3
	tellAll   = 20
	tellAgain = time.Minute
)

// refusals tells of calls that were refused. There may be any number of them.
type refusals struct {
	log *slog.Logger

	mu    sync.Mutex
	since time.Time
	lines int
	told  map[origin.Share]int
}

func (l *refusals) tell(from *origin.Origin, peer net.Addr, why error) {
	if l.allows(from) {
		l.log.Warn("a call was refused", "peer", peer, "reason", why)
	}
}

func (l *refusals) allows(from *origin.Origin) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) >= tellAgain {
		l.since, l.lines = now, 0
		clear(l.told)
	}
	share := from.Share()
	if l.lines >= tellAll || l.told[share] >= tellEach {
		return false
	}
	l.lines++
	l.told[share]++
	return true
}
