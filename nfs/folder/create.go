// This file holds the procedures that make files: CREATE, MKDIR, SYMLINK and MKNOD.

package folder

import (
	"encoding/binary"
	"errors"
	"io/fs"

	"github.com/weft-rdma/weft/nfs"
)

// makeAndReply answers a procedure that makes a file under a name, and syncs it. F makes the file
// in the directory. It returns the node, which makeAndReply releases, and whether the file is new.
func (s *Server) makeAndReply(q *call, where *nfs.DirOpArgs, f func(dir *node) (*node, bool, error)) ([]byte, error) {
	var res nfs.CreateRes
	dir, _, err := s.resolve(q, where.Dir)
	if err == nil {
		defer s.tree.release(dir)
		var n *node
		n, res.DirWcc, err = s.makeIn(dir, where.Name, f)
		if n != nil {
			defer s.tree.release(n)
		}
		if err == nil {
			res.Object = nfs.PostOpFH{Follows: true, FH: n.fh[:]}
			res.Attr = s.post(n)
		}
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

func (s *Server) makeIn(dir *node, name string, f func(dir *node) (*node, bool, error)) (*node, nfs.WccData, error) {
	c, err := s.begin(dir)
	if err != nil {
		return nil, nfs.WccData{}, err
	}
	var n *node
	fresh := false
	if err = s.checkMake(&c.before, name); err == nil {
		n, fresh, err = f(dir)
	}
	c.end()
	if err == nil && fresh {
		err = s.stable(n, dir)
	} else if err == nil {
		err = s.stable(n)
	}
	return n, c.wcc, err
}

// checkMake refuses names that cannot be made in the object with the attributes st.
func (s *Server) checkMake(st *info, name string) error {
	if st.Type != nfs.TypeDir {
		return nfs.ErrNotDir
	}
	if err := s.checkName(name); err != nil {
		return err
	}
	if err := s.writable(); err != nil {
		return err
	}
	if isDot(name) {
		return nfs.ErrExist
	}
	return nil
}

// newNode returns the node of a new object, after it has set the attributes.
func (s *Server) newNode(q *call, dir *node, name string, o object, f file, to nfs.SetAttributes) (*node, bool, error) {
	st, err := s.vol.stat(o)
	if err != nil {
		o.close()
		if f != nil {
			f.close()
		}
		return nil, false, err
	}
	n := s.tree.adopt(o, &st, place{dir.key, name})
	if f != nil {
		s.tree.keep(n, forWriting, f)
	}
	return n, true, s.setNew(q, n, &st, to)
}

// create answers CREATE (RFC 1813 §3.3.8).
func (s *Server) create(q *call) ([]byte, error) {
	var args nfs.CreateArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	if args.Mode == nfs.Exclusive {
		args.Attr = exclusive(args.Verf)
	}
	return s.makeAndReply(q, &args.Where, func(dir *node) (n *node, fresh bool, err error) {
		// A user of this machine may make or remove the file in between.
		for range 3 {
			n, err = s.existing(q, dir, &args)
			if !errors.Is(err, fs.ErrNotExist) {
				return n, false, err
			}
			o, f, err := s.vol.create(q.creds, s.tree.object(dir), args.Where.Name, q.creds.mode(args.Attr.Mode))
			if err == nil {
				return s.newNode(q, dir, args.Where.Name, o, f, args.Attr)
			}
			if !errors.Is(err, fs.ErrExist) {
				return nil, false, err
			}
		}
		return nil, false, nfs.ErrExist
	})
}

// exclusive returns the attributes that hold a verifier until the client sets others: the
// times, in 31 bits of seconds, which every file system can store.
func exclusive(v nfs.Verifier) nfs.SetAttributes {
	half := func(b []byte) nfs.SetTime {
		w := binary.BigEndian.Uint32(b)
		return nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.Time{Sec: w & 0x7fffffff}}
	}
	return nfs.SetAttributes{Mtime: half(v[:4]), Atime: half(v[4:])}
}

// existing returns the existing file, if CREATE succeeds with it: for EXCLUSIVE the file that
// was made with the same verifier, for UNCHECKED any regular file. UNCHECKED sets its size,
// if asked to, and nothing else.
func (s *Server) existing(q *call, dir *node, args *nfs.CreateArgs) (*node, error) {
	o, st, err := s.vol.lookup(q.creds, s.tree.object(dir), args.Where.Name)
	if err != nil {
		return nil, err
	}
	switch {
	case st.Type != nfs.TypeReg, args.Mode == nfs.Guarded,
		args.Mode == nfs.Exclusive && !madeBy(&st, &args.Attr):
		o.close()
		return nil, nfs.ErrExist
	}
	n := s.tree.adopt(o, &st, place{dir.key, args.Where.Name})
	if args.Mode == nfs.Unchecked && args.Attr.Size.Set {
		n.change.Lock()
		err = s.set(q, n, &st, &nfs.SetAttributes{Size: args.Attr.Size})
		n.change.Unlock()
	}
	return n, err
}

func madeBy(st *info, to *nfs.SetAttributes) bool {
	return st.Size == 0 && st.Mtime.Sec == to.Mtime.Time.Sec && st.Atime.Sec == to.Atime.Time.Sec
}

// mkdir answers MKDIR (RFC 1813 §3.3.9).
func (s *Server) mkdir(q *call) ([]byte, error) {
	var args nfs.MkdirArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	return s.makeAndReply(q, &args.Where, func(dir *node) (*node, bool, error) {
		o, err := s.vol.mkdir(q.creds, s.tree.object(dir), args.Where.Name, q.creds.mode(args.Attr.Mode))
		if err != nil {
			return nil, false, err
		}
		return s.newNode(q, dir, args.Where.Name, o, nil, args.Attr)
	})
}

// symlink answers SYMLINK (RFC 1813 §3.3.10). The path in the link is not interpreted.
func (s *Server) symlink(q *call) ([]byte, error) {
	var args nfs.SymlinkArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	return s.makeAndReply(q, &args.Where, func(dir *node) (*node, bool, error) {
		o, err := s.vol.symlink(q.creds, s.tree.object(dir), args.Where.Name, args.Path)
		if err != nil {
			return nil, false, err
		}
		return s.newNode(q, dir, args.Where.Name, o, nil, args.Attr)
	})
}

// mknod answers MKNOD (RFC 1813 §3.3.11).
func (s *Server) mknod(q *call) ([]byte, error) {
	var args nfs.MknodArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	return s.makeAndReply(q, &args.Where, func(dir *node) (*node, bool, error) {
		switch args.Type {
		case nfs.TypeChr, nfs.TypeBlk, nfs.TypeSock, nfs.TypeFifo:
		default:
			return nil, false, nfs.ErrBadType
		}
		if device := args.Type == nfs.TypeChr || args.Type == nfs.TypeBlk; device && q.creds.squashed {
			return nil, false, nfs.ErrPerm
		}
		o, err := s.vol.mknod(q.creds, s.tree.object(dir), args.Where.Name, args.Type, q.creds.mode(args.Attr.Mode), args.Spec)
		if err != nil {
			return nil, false, err
		}
		return s.newNode(q, dir, args.Where.Name, o, nil, args.Attr)
	})
}
