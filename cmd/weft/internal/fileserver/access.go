// This file decides who may use a file server, and says in the log what would admit a
// refused caller.

package fileserver

import (
	"errors"
	"fmt"
	"log/slog"
	"net"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// access returns the rules of c for who may use the server.
func (c *Config) access() *mount.Access {
	return c.accessBy(Rules{c.Allow, c.Names, c.Insecure, c.XprtSec})
}

// accessBy returns other rules for c's server.
func (c *Config) accessBy(by Rules) *mount.Access {
	log := &fairness.Log{Logger: c.Logger}
	return &mount.Access{
		Allow: by.Allow, Names: by.Names, Personal: c.Personal, AllowOthers: c.AllowOthers, Insecure: by.Insecure,
		XprtSec: by.XprtSec, Look: c.look,
		Refused: func(r *oncrpc.Request, why error) {
			log.Log(slog.LevelWarn, "refused a call", r.Origin.Share(), r.Remote, Advised(why))
		},
	}
}

// admit is access.Admit with advice in its error.
func (s *Server) admit(nc net.Conn) (*origin.Origin, error) {
	from, err := s.access.Load().Admit(nc)
	return from, Advised(err)
}

// Advised adds to the reason for refusing a caller the flag that admits it. There is
// none for a caller that has gone.
func Advised(err error) error {
	if errors.Is(err, origin.ErrGone) {
		return err
	}
	for _, a := range []struct {
		err  error
		what string
	}{
		{mount.ErrHost, "--allow admits it"},
		{mount.ErrUser, "--allow-others admits it"},
		{origin.ErrOwner, "--allow-others admits it"},
		{mount.ErrPort, "--insecure accepts any"},
		{mount.ErrSecurity, "--xprtsec says which is"},
	} {
		if errors.Is(err, a.err) {
			return fmt.Errorf("%w; %s", err, a.what)
		}
	}
	return err
}
