// This file holds READDIR and READDIRPLUS.

package folder

import (
	"errors"
	"syscall"

	"github.com/weft-rdma/weft/nfs"
)

// cookieVerf is the verifier of all cookies, which stay valid. It is not zero, so that
// cookies of another server are recognized (RFC 1813 §3.3.16).
var cookieVerf = nfs.Verifier{'w', 'e', 'f', 't', 'd', 'i', 'r', 1}

// readdir answers READDIR (RFC 1813 §3.3.16).
func (s *Server) readdir(q *call) ([]byte, error) {
	var args nfs.ReaddirArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	return s.listed(q, args.Dir, args.Cookie, args.Verf, args.Count, func(dir *node, attr nfs.PostOpAttr) *nfs.DirWriter {
		e := q.r.Accept(nfs.ProcReaddir.MaxResults() + int(min(args.Count, nfs.MaxListing)))
		return nfs.NewReaddir(e, &attr, cookieVerf, args.Count)
	}, false)
}

// readdirplus answers READDIRPLUS (RFC 1813 §3.3.17).
func (s *Server) readdirplus(q *call) ([]byte, error) {
	var args nfs.ReaddirplusArgs
	if err := q.decode(&args); err != nil {
		return nil, err
	}
	return s.listed(q, args.Dir, args.Cookie, args.Verf, args.MaxCount, func(dir *node, attr nfs.PostOpAttr) *nfs.DirWriter {
		e := q.r.Accept(nfs.ProcReaddirplus.MaxResults() + int(min(args.MaxCount, nfs.MaxListing)))
		return nfs.NewReaddirplus(e, &attr, cookieVerf, args.DirCount, args.MaxCount)
	}, true)
}

// listed answers READDIR and READDIRPLUS.
func (s *Server) listed(q *call, fh nfs.FH, cookie uint64, verf nfs.Verifier, count uint32,
	begin func(*node, nfs.PostOpAttr) *nfs.DirWriter, plus bool) ([]byte, error) {
	dir, st, err := s.resolve(q, fh)
	if err != nil {
		return q.reply(&nfs.ReaddirRes{Listing: nfs.Listing{Stat: s.fail(q, err)}}, 0)
	}
	defer s.tree.release(dir)
	switch {
	case st.Type != nfs.TypeDir:
		err = nfs.ErrNotDir
	case cookie != 0 && verf != cookieVerf:
		err = nfs.ErrBadCookie
	default:
		err = s.vol.access(q.creds, s.tree.object(dir), mayRead)
	}
	var found []dirent
	end := false
	if err == nil {
		found, end, err = s.entries(q, dir, &st, cookie, count)
	}
	attr := s.post(dir)
	if err == nil {
		w := begin(dir, attr)
		all := s.fill(q, w, dir, &st, found, plus)
		if w.Fits() && (w.Len() > 0 || len(found) == 0) {
			return w.Finish(end && all)
		}
		err = nfs.ErrTooSmall
	}
	return q.reply(&nfs.ReaddirRes{Listing: nfs.Listing{Stat: s.fail(q, err), DirAttr: attr}}, 0)
}

// minEntry is the least length of an entry in a reply, in octets.
const minEntry = 4 + 8 + 4 + 4 + 8

// entries returns the entries after a cookie, no more than fit in count octets, and whether
// they are the last of the directory.
func (s *Server) entries(q *call, dir *node, st *info, cookie uint64, count uint32) (found []dirent, end bool, err error) {
	left := int(min(count, nfs.MaxListing))
	end, err = s.tree.list(q, dir, st, cookie, func(e *dirent) bool {
		if left <= 0 {
			return false
		}
		left -= minEntry + len(e.name)&^3
		found = append(found, *e)
		return true
	})
	if errors.Is(err, syscall.EINVAL) && cookie != 0 {
		err = nfs.ErrBadCookie
	}
	return found, end, err
}

// fill adds entries until one does not fit, and reports whether all did.
func (s *Server) fill(q *call, w *nfs.DirWriter, dir *node, st *info, found []dirent, plus bool) bool {
	// A caller who may not search the directory gets names only.
	plus = plus && s.vol.access(q.creds, s.tree.object(dir), mayExecute) == nil
	for i := range found {
		e := &found[i]
		entry := nfs.Entry{FileID: e.ino, Name: e.name, Cookie: e.cookie}
		if e.name == ".." && dir == s.tree.root {
			entry.FileID = st.FileID // hide the directory above the export
		}
		switch {
		case plus && isDot(e.name):
			s.lookDot(q, dir, st, &entry)
		case plus:
			s.look(dir, &entry)
		}
		if !w.Add(&entry) {
			return false
		}
	}
	return true
}

// look adds the attributes and the handle of a name.
func (s *Server) look(dir *node, e *nfs.Entry) {
	o, st, err := s.vol.lookup(serverCreds, s.tree.object(dir), e.Name)
	if err != nil {
		return
	}
	// Most entries of a listing are not used soon, so they are not kept open.
	o.close()
	fh := s.tree.remember(st.key, place{dir.key, e.Name})
	s.addAttr(e, &st, fh)
}

// lookDot is look for "." and "..".
func (s *Server) lookDot(q *call, dir *node, st *info, e *nfs.Entry) {
	n, err := s.find(q, dir, st, e.Name)
	if err != nil {
		return
	}
	defer s.tree.release(n)
	if found, err := s.stat(n); err == nil {
		s.addAttr(e, &found, n.fh)
	}
}

func (s *Server) addAttr(e *nfs.Entry, st *info, fh handle) {
	e.FileID = st.FileID
	e.Attr = postOf(st)
	e.Object = nfs.PostOpFH{Follows: true, FH: fh[:]}
}
