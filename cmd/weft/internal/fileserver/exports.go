// This file dispatches calls to exports, and replaces exports while they are served.

package fileserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"sync/atomic"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/folder"
	"github.com/weft-rdma/weft/nfs/mount"
	"github.com/weft-rdma/weft/nfs/nlm"
	"github.com/weft-rdma/weft/oncrpc"
)

// exports are the exports of a file server. It is the handler of NFS.
type exports struct {
	exported func([]string, func(*oncrpc.Request) string) // is Config.Exported
	mounts   *mount.Server
	now      atomic.Pointer[served]
}

// served are the exports at a moment; they never change.
type served struct {
	all    []*export
	byMark map[uint32]*export
}

// openExports opens the directories of c.Exports, and makes c serve them.
func (c *Config) openExports() (*exports, error) {
	all, _, err := c.opened(nil)
	if err != nil {
		return nil, err
	}
	s := &exports{exported: c.Exported}
	if s.mounts, err = mount.New(mountables(all)...); err != nil {
		return nil, errors.Join(err, closeAll(all))
	}
	s.set(all)
	c.Low, c.High = nfs.V3, nfs.V3
	c.Handler = oncrpc.Mux{
		{Prog: nfs.Program, Low: nfs.V3, High: nfs.V3, Handler: s},
		nlm.NoLocks(),
		s.mounts.Program(), // over RDMA, too, for clients that have no other connection
	}
	c.NLM = true
	c.Mount = oncrpc.Mux{s.mounts.Program()}
	return s, nil
}

// opened opens what c.Exports has and old has not, and returns with what of old stays all
// that is to be served, and what of old is over. After an error old is as before.
func (c *Config) opened(old []*export) (all, over []*export, err error) {
	if err := CheckExports(c.Exports); err != nil {
		return nil, nil, err
	}
	before := make(map[string]*export)
	for _, e := range old {
		before[e.Name] = e
	}
	var fresh []*export
	fail := func(err error) error { return errors.Join(err, closeAll(fresh)) }
	for _, x := range c.Exports {
		x.Name = path.Clean("/" + x.Name)
		if e := before[x.Name]; e != nil && e.Files.Root == x.Files.Root {
			delete(before, x.Name)
			all = append(all, c.serves(x, e.files, e.usage))
			continue
		}
		files, err := c.open(&x, len(c.Exports))
		if err != nil {
			return nil, nil, fail(err)
		}
		e := c.serves(x, files, newUsage())
		all, fresh = append(all, e), append(fresh, e)
	}
	// Only now, because an error above has to leave them as they were.
	for _, e := range all {
		if err := e.files.Reconfigure(e.Files); err != nil {
			for _, e := range old {
				err = errors.Join(err, e.files.Reconfigure(e.Files)) // as before
			}
			return nil, nil, fail(fmt.Errorf("export %s: %w", e.Name, err))
		}
	}
	for _, e := range all {
		e.usage.limit(e.Quota, waitingMemory/int64(len(all)))
	}
	return all, slices.Collect(maps.Values(before)), nil
}

func (s *exports) set(all []*export) {
	now := &served{all: all, byMark: make(map[uint32]*export)}
	for _, e := range all {
		now.byMark[mark(e.Name)] = e
	}
	s.now.Store(now)
	if s.exported != nil {
		var names []string
		for _, e := range all {
			names = append(names, e.Name)
		}
		s.exported(names, s.exportOf)
	}
}

// ServeRPC executes a call of NFS, by the export of the handle that its arguments begin
// with.
func (s *exports) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	now := s.now.Load()
	if r.Proc == uint32(nfs.ProcNull) {
		return now.all[0].files.ServeRPC(ctx, r) // it is of no export
	}
	if len(now.all) == 1 {
		return now.all[0].handler.ServeRPC(ctx, r)
	}
	d := oncrpc.NewDecoder(r.Args, "file handle")
	if mark, ok := folder.MarkOf(nfs.FH(d.Opaque(nfs.MaxFH))); ok {
		if e := now.byMark[mark]; e != nil {
			return e.handler.ServeRPC(ctx, r)
		}
	}
	// Every export answers a handle that is not its own in the same way.
	return now.all[0].files.ServeRPC(ctx, r)
}

// exportOf returns the name of the export that a call of NFS is for, by the mark of its handle;
// "" if there is none.
func (s *exports) exportOf(r *oncrpc.Request) string {
	if r.Prog != nfs.Program || r.Vers != nfs.V3 || r.Proc == uint32(nfs.ProcNull) {
		return ""
	}
	now := s.now.Load()
	if len(now.all) == 1 {
		return now.all[0].Name
	}
	d := oncrpc.NewDecoder(r.Args, "file handle")
	if mark, ok := folder.MarkOf(nfs.FH(d.Opaque(nfs.MaxFH))); ok {
		if e := now.byMark[mark]; e != nil {
			return e.Name
		}
	}
	return ""
}

// close ends all exports.
func (s *exports) close() error { return closeAll(s.now.Load().all) }

func closeAll(all []*export) error {
	var errs []error
	for _, e := range all {
		errs = append(errs, e.files.Close())
	}
	return errors.Join(errs...)
}

func mountables(all []*export) (m []mount.Export) {
	for _, e := range all {
		m = append(m, e.mountable())
	}
	return m
}

// Reload replaces the exports by others, and the rules for calls of none. An export that
// keeps its name and directory goes on without an interruption. Nobody's connection ends;
// calls of those who are no longer allowed are rejected. After an error all is as before.
func (s *Server) Reload(list []Export) error {
	cfg := s.cfg
	cfg.Exports = list
	all, over, err := cfg.opened(s.exports.now.Load().all)
	if err != nil {
		return err
	}
	if err := s.exports.mounts.SetExports(mountables(all)...); err != nil {
		return err
	}
	s.access.Store(cfg.accessBy(RulesOf(list, cfg.Personal)))
	s.exports.set(all)
	return closeAll(over)
}

// KeysLost returns why the keys of file handles could not be saved, as far as they could
// not; see [folder.Server.KeyLost].
func (s *Server) KeysLost() (lost []error) {
	for _, e := range s.exports.now.Load().all {
		if err := e.files.KeyLost(); err != nil {
			lost = append(lost, err)
		}
	}
	return lost
}
