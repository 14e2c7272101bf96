// This file holds the procedures that change names of existing files: REMOVE, RMDIR, RENAME
// and LINK.

package folder

import (
	"bytes"

	"github.com/weft-rdma/weft/nfs"
)

// remove answers REMOVE (RFC 1813 §3.3.12).
func (s *Server) remove(q *call) ([]byte, error) { return s.unlink(q, false) }

// rmdir answers RMDIR (RFC 1813 §3.3.13).
func (s *Server) rmdir(q *call) ([]byte, error) { return s.unlink(q, true) }

func (s *Server) unlink(q *call, directory bool) ([]byte, error) {
	var args nfs.DirOpArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.WccRes
	dir, _, err := s.resolve(q, args.Dir)
	if err == nil {
		defer s.tree.release(dir)
		res.Wcc, err = s.unlinkIn(q, dir, args.Name, directory)
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

func (s *Server) unlinkIn(q *call, dir *node, name string, directory bool) (nfs.WccData, error) {
	c, err := s.begin(dir)
	if err != nil {
		return nfs.WccData{}, err
	}
	if err = s.checkUnlink(&c.before, name, directory); err == nil {
		o := s.tree.object(dir)
		var there *target
		there, err = s.targetOf(o, name)
		defer there.close()
		switch {
		case err != nil:
		case directory:
			err = s.vol.rmdir(q.creds, o, name)
		case there != nil && there.Type == nfs.TypeDir:
			// A caller who may not remove it does not learn its type.
			if err = s.vol.access(q.creds, o, mayWrite|mayExecute); err == nil {
				err = nfs.ErrIsDir
			}
		default:
			err = s.vol.remove(q.creds, o, name)
		}
		if err == nil {
			s.forgetUnnamed(there)
		}
	}
	c.end()
	if err == nil {
		err = s.stable(dir)
	}
	return c.wcc, err
}

// checkUnlink refuses names that cannot be removed from the object with the attributes st.
// RFC 1813 §3.3.13 has the statuses of RMDIR for "." and "..".
func (s *Server) checkUnlink(st *info, name string, directory bool) error {
	if st.Type != nfs.TypeDir {
		return nfs.ErrNotDir
	}
	if err := s.checkName(name); err != nil {
		return err
	}
	if err := s.writable(); err != nil {
		return err
	}
	switch {
	case isDot(name) && !directory:
		return nfs.ErrAcces
	case name == ".":
		return nfs.ErrInval
	case name == "..":
		return nfs.ErrExist
	}
	return nil
}

// A target is the object that a name stands for before the name is changed.
type target struct {
	object object
	info
}

// targetOf returns the object that a name stands for, or nil. It returns an error only if that
// is temporary, so that nothing is changed then.
func (s *Server) targetOf(dir object, name string) (*target, error) {
	o, st, err := s.vol.lookup(serverCreds, dir, name)
	if temporary(err) {
		return nil, err
	}
	if err != nil {
		return nil, nil
	}
	return &target{o, st}, nil
}

func (t *target) close() {
	if t != nil {
		t.object.close()
	}
}

// forgetUnnamed forgets an object that has lost a name, unless it has another one, which it may
// have got meanwhile.
func (s *Server) forgetUnnamed(t *target) {
	if t == nil {
		return
	}
	if t.Type != nfs.TypeDir {
		now, err := s.vol.stat(t.object)
		if err != nil { // an object of the portable backend, which was its name
			now = t.info
			now.NLink--
		}
		if now.NLink > 0 {
			return
		}
	}
	s.tree.forget(t.key)
}

// rename answers RENAME (RFC 1813 §3.3.14).
func (s *Server) rename(q *call) ([]byte, error) {
	var args nfs.RenameArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.RenameRes
	from, fromSt, err := s.resolve(q, args.From.Dir)
	if err == nil {
		defer s.tree.release(from)
		var to *node
		var toSt info
		if to, toSt, err = s.resolve(q, args.To.Dir); err == nil {
			defer s.tree.release(to)
			// CREATE locks a directory and then a file in it. To lock a file first could
			// deadlock, so only directories are locked here.
			if fromSt.Type != nfs.TypeDir || toSt.Type != nfs.TypeDir {
				err = nfs.ErrNotDir
				res.ToWcc.After = s.post(to)
			} else {
				res.FromWcc, res.ToWcc, err = s.renameIn(q, from, to, args.From.Name, args.To.Name)
			}
		}
		if !res.FromWcc.After.Follows {
			res.FromWcc.After = s.post(from)
		}
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

func (s *Server) renameIn(q *call, from, to *node, fromName, toName string) (fromWcc, toWcc nfs.WccData, err error) {
	a, b, err := s.beginBoth(from, to)
	if err != nil {
		return nfs.WccData{}, nfs.WccData{}, err
	}
	if err = s.checkRename(fromName, toName); err == nil {
		err = s.moveTo(q, from, to, fromName, toName)
	}
	b.end()
	if a == b {
		fromWcc, toWcc = a.wcc, a.wcc
	} else {
		a.end()
		fromWcc, toWcc = a.wcc, b.wcc
	}
	if err == nil {
		err = s.stable(to)
	}
	if err == nil && a != b {
		err = s.stable(from)
	}
	return fromWcc, toWcc, err
}

// beginBoth begins changes of two directories, which may be one. All calls lock directories
// in the same order.
func (s *Server) beginBoth(from, to *node) (a, b *change, err error) {
	if from == to {
		a, err = s.begin(from)
		return a, a, err
	}
	first, second := from, to
	if bytes.Compare(from.fh[:], to.fh[:]) > 0 {
		first, second = to, from
	}
	if a, err = s.begin(first); err != nil {
		return nil, nil, err
	}
	if b, err = s.begin(second); err != nil {
		a.end()
		return nil, nil, err
	}
	if first == to {
		a, b = b, a
	}
	return a, b, nil
}

func (s *Server) checkRename(fromName, toName string) error {
	for _, name := range []string{fromName, toName} {
		if err := s.checkName(name); err != nil {
			return err
		}
		if isDot(name) {
			return nfs.ErrInval // RFC 1813 §3.3.14
		}
	}
	return s.writable()
}

func (s *Server) moveTo(q *call, from, to *node, fromName, toName string) error {
	fo, too := s.tree.object(from), s.tree.object(to)
	moved, err := s.targetOf(fo, fromName)
	if err != nil {
		return err
	}
	defer moved.close()
	over, err := s.targetOf(too, toName)
	if err != nil {
		return err
	}
	defer over.close()
	if err := s.vol.rename(q.creds, fo, fromName, too, toName); err != nil {
		return err
	}
	if moved == nil || over != nil && over.key == moved.key {
		return nil // two names of one file: rename has done nothing
	}
	s.tree.remember(moved.key, place{to.key, toName})
	s.forgetUnnamed(over)
	return nil
}

// link answers LINK (RFC 1813 §3.3.15).
func (s *Server) link(q *call) ([]byte, error) {
	var args nfs.LinkArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	var res nfs.LinkRes
	n, _, err := s.resolve(q, args.File)
	if err == nil {
		defer s.tree.release(n)
		var dir *node
		if dir, _, err = s.resolve(q, args.Link.Dir); err == nil {
			defer s.tree.release(dir)
			res.DirWcc, err = s.linkIn(q, n, dir, args.Link.Name)
		}
		res.Attr = s.post(n)
	}
	res.Stat = s.fail(q, err)
	return q.reply(&res, 0)
}

func (s *Server) linkIn(q *call, n, dir *node, name string) (nfs.WccData, error) {
	c, err := s.begin(dir)
	if err != nil {
		return nfs.WccData{}, err
	}
	if err = s.checkMake(&c.before, name); err == nil {
		var st info
		if st, err = s.stat(n); err == nil && st.Type == nfs.TypeDir {
			err = nfs.ErrInval
		}
		if err == nil {
			err = s.vol.link(q.creds, s.tree.object(n), s.tree.object(dir), name)
		}
	}
	c.end()
	if err == nil {
		err = s.stable(n, dir)
	}
	return c.wcc, err
}
