// This file is the program MOUNT.

package mount

import (
	"context"
	"errors"
	"path"
	"strings"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A Config says what a [Server] is to give out.
type Config struct {
	// Path is the folder's absolute path, with slashes, as its host has it. Clients
	// may mount it by that path, and as "/"; and by paths below either one, what is
	// below the folder. Empty is "/".
	Path string

	// Handle returns the handle of the directory to which the names lead from the
	// folder, none to the folder itself. No name is empty, "." or "..", nor has
	// a slash. An error is best an [nfs.Stat].
	Handle func(ctx context.Context, names []string) (nfs.FH, error)

	// Allow says who may mount. EXPORT shows it.
	Allow Allow

	// Guarded says that only those call who may, as by [Access.Guard]: Allow is
	// shown and nothing else.
	Guarded bool
}

// flavors are those that a client may use with the handles it gets, the best
// first: AUTH_SYS, and AUTH_NONE as nobody in particular.
var flavors = []oncrpc.Flavor{oncrpc.FlavorSys, oncrpc.FlavorNone}

// A Server is the program MOUNT: in version 3, and in versions 1 and 2 what is
// not about handles of NFS version 2, as clients may unmount by those. It is an
// [oncrpc.Handler].
//
// It remembers who has mounted what, as the protocol has it, to be shown and for
// nothing else: the handles are good without, too.
type Server struct {
	cfg    Config
	mounts mounts
}

// New returns a server.
func New(cfg Config) (*Server, error) {
	if cfg.Handle == nil {
		return nil, errors.New("mount: a server needs a Handle function")
	}
	cfg.Path = path.Clean("/" + cfg.Path)
	return &Server{cfg: cfg}, nil
}

// Program is the server as a program of an [oncrpc.Mux].
func (s *Server) Program() oncrpc.Program {
	return oncrpc.Program{Prog: nfs.MountProgram, Low: nfs.MountV1, High: nfs.MountV3, Handler: s}
}

// ServeRPC executes a call.
func (s *Server) ServeRPC(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	d := oncrpc.NewDecoder(r.Args, "MOUNT arguments")
	var p nfs.MountPath
	proc := nfs.MountProc(r.Proc)
	switch proc {
	case nfs.MountMnt, nfs.MountUmnt:
		p.Decode(&d)
	case nfs.MountNull, nfs.MountDump, nfs.MountUmntAll, nfs.MountExport:
	default:
		return nil, &oncrpc.AcceptError{Stat: oncrpc.ProcUnavail}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	var list nfs.MountList
	var exports nfs.ExportList
	room := 1 << 10
	switch proc {
	case nfs.MountDump:
		list = s.mounts.list()
		room = listLen(list)
	case nfs.MountExport:
		exports = s.exports()
		room = exportsLen(exports)
	}
	e := r.Accept(room)
	host := hostOf(r.Remote)
	switch proc {
	case nfs.MountMnt:
		s.mount(ctx, r, host, p.Path, &e)
	case nfs.MountUmnt:
		s.mounts.remove(host, s.clean(p.Path))
	case nfs.MountUmntAll:
		s.mounts.removeAll(host)
	case nfs.MountDump:
		list.Encode(&e)
	case nfs.MountExport:
		exports.Encode(&e)
	}
	return e.Finish()
}

// mount executes MNT.
func (s *Server) mount(ctx context.Context, r *oncrpc.Request, host, p string, e *oncrpc.Encoder) {
	if r.Vers < nfs.MountV3 {
		// There is no NFS version 2 here, nor handles of it.
		res := nfs.MountV1Res{Stat: uint32(nfs.MountErrAcces)}
		res.Encode(e)
		return
	}
	res := nfs.MountRes{Stat: nfs.MountErrAcces}
	if s.cfg.Guarded || s.cfg.Allow.Allows(r.Remote) {
		fh, err := s.handle(ctx, p)
		res = nfs.MountRes{Stat: statOf(err), FH: fh, Flavors: flavors}
	}
	if res.Stat == nfs.MountOK {
		s.mounts.add(host, s.clean(p))
	}
	res.Encode(e)
}

// handle returns the handle of what a client calls p.
func (s *Server) handle(ctx context.Context, p string) (nfs.FH, error) {
	if strings.ContainsRune(p, 0) {
		return nil, nfs.MountErrInval
	}
	rest, below := cutPath(path.Clean("/"+p), s.cfg.Path)
	if !below {
		rest = path.Clean("/" + p)
	}
	var names []string
	for name := range strings.SplitSeq(rest, "/") {
		if len(name) > nfs.MaxMountName {
			return nil, nfs.MountErrNameTooLong
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return s.cfg.Handle(ctx, names)
}

// clean is a path as it is remembered.
func (s *Server) clean(p string) string { return path.Clean("/" + p) }

// cutPath returns what of p lies below the folder base.
func cutPath(p, base string) (rest string, below bool) {
	if base == "/" {
		return p, true
	}
	rest, below = strings.CutPrefix(p, base)
	return rest, below && (rest == "" || rest[0] == '/')
}

// exports is the answer to EXPORT: both names of the folder, and who may mount
// them.
func (s *Server) exports() nfs.ExportList {
	var groups []string
	for _, p := range s.cfg.Allow {
		groups = append(groups, p.String())
	}
	list := nfs.ExportList{{Path: s.cfg.Path, Groups: groups}}
	if s.cfg.Path != "/" {
		list = append(list, nfs.Export{Path: "/", Groups: groups})
	}
	return list
}

// listLen and exportsLen are how many octets the answers to DUMP and EXPORT have: a
// mark that there is another entry, and the lengths of strings, have 4 each.
func listLen(list nfs.MountList) int {
	n := 4
	for _, m := range list {
		n += 12 + oncrpc.RoundUp(len(m.Host)) + oncrpc.RoundUp(len(m.Path))
	}
	return n
}

func exportsLen(list nfs.ExportList) int {
	n := 4
	for _, x := range list {
		n += 12 + oncrpc.RoundUp(len(x.Path))
		for _, group := range x.Groups {
			n += 8 + oncrpc.RoundUp(len(group))
		}
	}
	return n
}

// statOf is the status of MNT for an error of Config.Handle.
func statOf(err error) nfs.MountStat {
	var mount nfs.MountStat
	var stat nfs.Stat
	switch {
	case err == nil:
		return nfs.MountOK
	case errors.As(err, &mount):
		return mount
	case errors.As(err, &stat):
		// The codes that both have are the same numbers (RFC 1813 §5.1.5).
		switch m := nfs.MountStat(stat); m {
		case nfs.MountErrPerm, nfs.MountErrNoEnt, nfs.MountErrIO, nfs.MountErrAcces, nfs.MountErrNotDir,
			nfs.MountErrInval, nfs.MountErrNameTooLong, nfs.MountErrNotSupp:
			return m
		}
	}
	return nfs.MountErrServerFault
}
