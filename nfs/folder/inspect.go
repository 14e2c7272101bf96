// This file holds the procedures that change nothing: GETATTR, LOOKUP, ACCESS, READLINK, and
// those about the whole file system.

package folder

import (
	"github.com/weft-rdma/weft/nfs"
)

// getattr answers GETATTR (RFC 1813 §3.3.1).
func (s *Server) getattr(q *call) ([]byte, error) {
	var args nfs.GetattrArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.GetattrRes
	n, st, err := s.resolve(q, args.Object)
	if err == nil {
		s.tree.release(n)
		res.Attr = st.Attributes
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

// lookup answers LOOKUP (RFC 1813 §3.3.3).
func (s *Server) lookup(q *call) ([]byte, error) {
	var args nfs.DirOpArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.LookupRes
	dir, st, err := s.resolve(q, args.Dir)
	if err == nil {
		defer s.tree.release(dir)
		var n *node
		if n, err = s.find(q, dir, &st, args.Name); err == nil {
			defer s.tree.release(n)
			res.Object = n.fh[:]
			res.Attr = s.post(n)
		}
		res.DirAttr = s.post(dir)
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

// find returns the node of a name in a directory. The caller releases it.
func (s *Server) find(q *call, dir *node, st *info, name string) (*node, error) {
	if st.Type != nfs.TypeDir {
		return nil, nfs.ErrNotDir
	}
	if err := s.checkName(name); err != nil {
		return nil, err
	}
	if name == "." || name == ".." && dir == s.tree.root {
		// For clients the root of an export is its own parent.
		if err := s.vol.access(q.creds, s.tree.object(dir), mayExecute); err != nil {
			return nil, err
		}
		return s.tree.acquire(dir.key, q.share)
	}
	if name == ".." {
		o, st, err := s.vol.parent(q.creds, s.tree.object(dir))
		if err != nil {
			return nil, err
		}
		return s.tree.adopt(o, &st, place{}), nil
	}
	o, found, err := s.vol.lookup(q.creds, s.tree.object(dir), name)
	if err != nil {
		return nil, err
	}
	return s.tree.adopt(o, &found, place{dir.key, name}), nil
}

// The rights that the bits of ACCESS stand for, in directories and in other files.
var (
	dirRights = []struct {
		bit    nfs.Access
		rights uint32
	}{
		{nfs.AccessRead, mayRead},
		{nfs.AccessLookup, mayExecute},
		{nfs.AccessModify, mayWrite | mayExecute},
		{nfs.AccessExtend, mayWrite | mayExecute},
		{nfs.AccessDelete, mayWrite | mayExecute},
	}
	fileRights = []struct {
		bit    nfs.Access
		rights uint32
	}{
		{nfs.AccessRead, mayRead},
		{nfs.AccessModify, mayWrite},
		{nfs.AccessExtend, mayWrite},
		{nfs.AccessExecute, mayExecute},
	}
)

// access answers ACCESS (RFC 1813 §3.3.4), by the mode and the ACL. It does not count what
// an owner may do with open files regardless of these.
func (s *Server) access(q *call) ([]byte, error) {
	var args nfs.AccessArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.AccessRes
	n, st, err := s.resolve(q, args.Object)
	if err == nil {
		defer s.tree.release(n)
		rights := fileRights
		if st.Type == nfs.TypeDir {
			rights = dirRights
		}
		// A read-only export does not keep writes from a device or a pipe of the client.
		frozen := s.rules.Load().ReadOnly && (st.Type == nfs.TypeDir || st.Type == nfs.TypeReg)
		asked := make(map[uint32]bool, len(rights))
		for _, r := range rights {
			if args.Access&r.bit == 0 || frozen && r.rights&mayWrite != 0 {
				continue
			}
			ok, known := asked[r.rights]
			if !known {
				ok = s.vol.access(q.creds, s.tree.object(n), r.rights) == nil
				asked[r.rights] = ok
			}
			if ok {
				res.Access |= r.bit
			}
		}
		res.Attr = postOf(&st)
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

// readlink answers READLINK (RFC 1813 §3.3.5).
func (s *Server) readlink(q *call) ([]byte, error) {
	var args nfs.ReadlinkArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.ReadlinkRes
	n, st, err := s.resolve(q, args.Symlink)
	if err == nil {
		defer s.tree.release(n)
		if st.Type != nfs.TypeLnk {
			err = nfs.ErrInval
		} else {
			res.Path, err = s.vol.readlink(s.tree.object(n))
		}
		res.Attr = s.post(n)
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, len(res.Path)+3)
}

// fileSystem returns the properties of the file system of a handle, and the handle's attributes.
func (s *Server) fileSystem(q *call, fh nfs.FH) (volumeInfo, nfs.PostOpAttr, error) {
	n, st, err := s.resolve(q, fh)
	if err != nil {
		return volumeInfo{}, nfs.PostOpAttr{}, err
	}
	defer s.tree.release(n)
	v, err := s.vol.volumeInfo()
	return v, postOf(&st), err
}

// fsstat answers FSSTAT (RFC 1813 §3.3.18).
func (s *Server) fsstat(q *call) ([]byte, error) {
	var args nfs.FsstatArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	v, attr, err := s.fileSystem(q, args.Object)
	return q.reply(&nfs.FsstatRes{
		Stat: s.fail(q, err), Attr: attr,
		TotalBytes: v.total, FreeBytes: v.free, AvailBytes: v.avail,
		TotalFiles: v.files, FreeFiles: v.freeFiles, AvailFiles: v.freeFiles,
	}, 0)
}

const (
	maxData = 1 << 20 // limit of one READ or WRITE, in octets, and the preferred size
	page    = 4 << 10
	dirPref = 64 << 10
)

// fsinfo answers FSINFO (RFC 1813 §3.3.19).
func (s *Server) fsinfo(q *call) ([]byte, error) {
	var args nfs.FsinfoArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	v, attr, err := s.fileSystem(q, args.Object)
	res := nfs.FsinfoRes{
		Stat: s.fail(q, err), Attr: attr,
		ReadMax: maxData, ReadPref: maxData, ReadMult: page,
		WriteMax: maxData, WritePref: maxData, WriteMult: page,
		DirPref:     dirPref,
		MaxFileSize: v.maxFile,
		TimeDelta:   nfs.Time{Nsec: v.tick},
		Properties:  nfs.PropHomogeneous | nfs.PropCanSetTime,
	}
	if v.links {
		res.Properties |= nfs.PropLink
	}
	if v.symlinks {
		res.Properties |= nfs.PropSymlink
	}
	return q.reply(&res, 0)
}

// pathconf answers PATHCONF (RFC 1813 §3.3.20).
func (s *Server) pathconf(q *call) ([]byte, error) {
	var args nfs.PathconfArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	v, attr, err := s.fileSystem(q, args.Object)
	return q.reply(&nfs.PathconfRes{
		Stat: s.fail(q, err), Attr: attr,
		LinkMax: v.linkMax, NameMax: v.nameMax,
		NoTrunc: true, ChownRestricted: true,
		CaseInsensitive: v.caseInsensitive, CasePreserving: true,
	}, 0)
}
