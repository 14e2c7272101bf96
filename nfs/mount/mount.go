// This file serves the MOUNT program.

package mount

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// An Export is a directory that clients may mount.
type Export struct {
	// Path is the export's absolute path on its host, with slashes, or another name that
	// begins with a slash; empty stands for "/". Clients may mount the export by that path,
	// and directories below it by paths below that. An export whose path is below that of
	// another one has precedence there.
	Path string

	// Handle returns the handle of the directory at the path of names below the export;
	// no names stand for the export itself. No name is empty, "." or "..", or contains a
	// slash. Errors should be an [nfs.Stat].
	Handle func(ctx context.Context, names []string) (nfs.FH, error)

	// Allow says which hosts may mount. EXPORT shows it.
	Allow Allow

	// Guarded says that calls are checked before they get here, as by
	// [Access.Guard]. Allow is then for EXPORT only.
	Guarded bool

	// Access, if not nil, decides about calls of MNT in place of Allow, and EXPORT shows
	// the export only to callers that it allows.
	Access *Access
}

// flavors are the authentication flavors that a client may use with its handles, in
// order of preference: AUTH_SYS, and AUTH_NONE for the anonymous user.
var flavors = []oncrpc.Flavor{oncrpc.FlavorSys, oncrpc.FlavorNone}

// A Server is the MOUNT program. It serves version 3, and of versions 1 and 2 the
// procedures that need no handle of NFS version 2, because some clients unmount by
// those. It is an [oncrpc.Handler].
//
// It keeps a list of mounts for DUMP, as the protocol asks. Handles do not depend on
// that list.
type Server struct {
	exports atomic.Pointer[[]Export] // those with the longest path first
	mounts  mounts
}

// New returns a Server. Clients may mount a single export as "/", too.
func New(exports ...Export) (*Server, error) {
	s := new(Server)
	if err := s.SetExports(exports...); err != nil {
		return nil, err
	}
	return s, nil
}

// SetExports replaces the exports, for the calls that begin later.
func (s *Server) SetExports(exports ...Export) error {
	if len(exports) == 0 {
		return errors.New("mount: there is no export")
	}
	exports = slices.Clone(exports)
	for i := range exports {
		x := &exports[i]
		if x.Handle == nil {
			return errors.New("mount: an export needs a Handle function")
		}
		x.Path = path.Clean("/" + x.Path)
	}
	slices.SortStableFunc(exports, func(a, b Export) int { return cmp.Compare(len(b.Path), len(a.Path)) })
	s.exports.Store(&exports)
	return nil
}

// Program returns the server's entry for an [oncrpc.Mux].
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
	host := hostOf(r.Remote)
	var res results
	switch proc {
	case nfs.MountMnt:
		res = s.mount(ctx, r, host, p.Path)
	case nfs.MountUmnt:
		s.mounts.remove(host, s.clean(p.Path))
	case nfs.MountUmntAll:
		s.mounts.removeAll(host)
	case nfs.MountDump:
		list := s.mounts.list()
		res = results{&list, listLen(list)}
	case nfs.MountExport:
		exports := s.list(r)
		res = results{&exports, exportsLen(exports)}
	}
	e := r.Accept(res.room)
	if res.encoder != nil {
		res.Encode(&e)
	}
	return e.Finish()
}

// results are those of a procedure, with the octets of memory for them. The zero value is
// void.
type results struct {
	encoder
	room int
}

type encoder interface{ Encode(*oncrpc.Encoder) }

// mntRoom is the room for the results of MNT: status, handle and flavors.
const mntRoom = 256

// mount executes MNT.
func (s *Server) mount(ctx context.Context, r *oncrpc.Request, host, p string) results {
	if r.Vers < nfs.MountV3 {
		// Handles of NFS version 2 do not exist here.
		return results{&nfs.MountV1Res{Stat: uint32(nfs.MountErrAcces)}, mntRoom}
	}
	fh, err := s.handle(ctx, r, p)
	res := &nfs.MountRes{Stat: statOf(err), FH: fh, Flavors: flavors}
	if res.Stat == nfs.MountOK {
		s.mounts.add(host, s.clean(p))
	}
	return results{res, mntRoom}
}

// handle returns the handle for a path as a client names it.
func (s *Server) handle(ctx context.Context, r *oncrpc.Request, p string) (nfs.FH, error) {
	if strings.ContainsRune(p, 0) {
		return nil, nfs.MountErrInval
	}
	x, rest := s.find(path.Clean("/" + p))
	switch {
	case x == nil:
		return nil, nfs.MountErrNoEnt
	case !s.mayMount(x, r):
		return nil, nfs.MountErrAcces
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
	return x.Handle(ctx, names)
}

// find returns the export of a path, and the path below it; nil is none.
func (s *Server) find(p string) (x *Export, rest string) {
	exports := *s.exports.Load()
	for i := range exports {
		if rest, below := cutPath(p, exports[i].Path); below {
			return &exports[i], rest
		}
	}
	if len(exports) == 1 {
		return &exports[0], p
	}
	return nil, ""
}

// mayMount reports whether a caller may mount an export.
func (s *Server) mayMount(x *Export, r *oncrpc.Request) bool {
	switch {
	case x.Access != nil:
		return x.Access.Check(r) == nil
	case x.Guarded:
		return true
	}
	return x.Allow.Allows(r.Remote)
}

// clean is a path as the list of mounts has it.
func (s *Server) clean(p string) string { return path.Clean("/" + p) }

// cutPath returns the part of p below base.
func cutPath(p, base string) (rest string, below bool) {
	if base == "/" {
		return p, true
	}
	rest, below = strings.CutPrefix(p, base)
	return rest, below && (rest == "" || rest[0] == '/')
}

// list is the result of EXPORT: the exports, and the networks that may mount them.
func (s *Server) list(r *oncrpc.Request) (list nfs.ExportList) {
	exports := *s.exports.Load()
	for i := len(exports) - 1; i >= 0; i-- { // the shortest path first
		x := &exports[i]
		if x.Access != nil && x.Access.check(r) != nil {
			continue
		}
		var groups []string
		for _, p := range x.Allow {
			groups = append(groups, p.String())
		}
		list = append(list, nfs.Export{Path: x.Path, Groups: groups})
		if len(exports) == 1 && x.Path != "/" {
			list = append(list, nfs.Export{Path: "/", Groups: groups})
		}
	}
	return list
}

// listLen and exportsLen are the lengths in octets of the results of DUMP and EXPORT.
// The word before each optional entry and the length of each string have 4 octets.
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

// statOf is the status of MNT for an error of Export.Handle.
func statOf(err error) nfs.MountStat {
	var mount nfs.MountStat
	var stat nfs.Stat
	switch {
	case err == nil:
		return nfs.MountOK
	case errors.As(err, &mount):
		return mount
	case errors.As(err, &stat):
		// Codes that both protocols have, have the same numbers (RFC 1813 §5.1.5).
		switch m := nfs.MountStat(stat); m {
		case nfs.MountErrPerm, nfs.MountErrNoEnt, nfs.MountErrIO, nfs.MountErrAcces, nfs.MountErrNotDir,
			nfs.MountErrInval, nfs.MountErrNameTooLong, nfs.MountErrNotSupp:
			return m
		}
	}
	return nfs.MountErrServerFault
}
