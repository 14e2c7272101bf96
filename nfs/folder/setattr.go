// This file holds SETATTR, and sets the attributes of new files.

package folder

import (
	"math"

	"github.com/weft-rdma/weft/nfs"
)

// setattr answers SETATTR (RFC 1813 §3.3.2).
func (s *Server) setattr(q *call) ([]byte, error) {
	var args nfs.SetattrArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.WccRes
	n, _, err := s.resolve(q, args.Object)
	if err == nil {
		defer s.tree.release(n)
		res.Wcc, err = s.setTo(q, n, &args)
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

func (s *Server) setTo(q *call, n *node, args *nfs.SetattrArgs) (nfs.WccData, error) {
	c, err := s.begin(n)
	if err != nil {
		return nfs.WccData{}, err
	}
	switch err = s.writable(); {
	case err != nil:
	case args.Guard.Check && args.Guard.Ctime != c.before.Ctime:
		err = nfs.ErrNotSync
	default:
		err = s.set(q, n, &c.before, &args.New)
	}
	c.end()
	if err == nil {
		err = s.stable(n)
	}
	return c.wcc, err
}

// set sets attributes of n. The times come last, because all other changes set them.
func (s *Server) set(q *call, n *node, st *info, to *nfs.SetAttributes) error {
	if err := s.checkSet(st, to); err != nil {
		return err
	}
	o := s.tree.object(n)
	if to.Size.Set {
		if err := s.truncate(q, n, st, to.Size.Value); err != nil {
			return err
		}
	}
	mode := q.creds.mode(to.Mode)
	if to.UID.Set || to.GID.Set {
		uid, gid := uint32(keepID), uint32(keepID)
		if to.UID.Set {
			uid = to.UID.Value
		}
		if to.GID.Set {
			gid = to.GID.Value
		}
		if err := s.vol.chown(q.creds, o, uid, gid); err != nil {
			return err
		}
		// chown has cleared the set-uid and set-gid bits. A mode in the same call does
		// not set them again.
		if st.Type != nfs.TypeDir {
			mode &^= nfs.ModeSetUID
			if mode&0o010 != 0 {
				mode &^= nfs.ModeSetGID
			}
		}
	}
	// A symbolic link has no mode of its own.
	if to.Mode.Set && st.Type != nfs.TypeLnk {
		if err := s.vol.chmod(q.creds, o, mode); err != nil {
			return err
		}
	}
	if to.Atime.How != nfs.DontChange || to.Mtime.How != nfs.DontChange {
		return s.vol.chtimes(q.creds, o, to.Atime, to.Mtime)
	}
	return nil
}

// checkSet refuses invalid attributes before anything is changed.
func (s *Server) checkSet(st *info, to *nfs.SetAttributes) error {
	for _, t := range []nfs.SetTime{to.Atime, to.Mtime} {
		// Linux uses such values for a special purpose.
		if t.How == nfs.SetToClientTime && t.Time.Nsec >= 1e9 {
			return nfs.ErrInval
		}
	}
	switch {
	case to.UID.Set && to.UID.Value == noID, to.GID.Set && to.GID.Value == noID:
		return nfs.ErrInval
	case to.Size.Set && st.Type != nfs.TypeReg:
		return nfs.ErrInval
	case to.Size.Set && to.Size.Value > math.MaxInt64:
		return nfs.ErrFBig
	}
	return nil
}

// truncate sets the size of n. What it gains is a hole.
func (s *Server) truncate(q *call, n *node, st *info, size uint64) error {
	f, err := s.changeable(q, n, st)
	if err != nil {
		return err
	}
	return f.truncate(q.creds, int64(size))
}

// setNew sets attributes of a new file, except for the mode, with which it was made. Only
// root sets owners: clients send the caller's uid and gid along, which is needless.
func (s *Server) setNew(q *call, n *node, st *info, to nfs.SetAttributes) error {
	to.Mode.Set = false
	if s.vol.uid(q.creds) != 0 {
		to.UID.Set, to.GID.Set = false, false
	}
	return s.set(q, n, st, &to)
}
