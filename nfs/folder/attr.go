// This file holds what all procedures share: attributes, those before and after a
// change, names, and rights.

package folder

import (
	"errors"
	"strings"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

// stat is what is known of n now. An object that no name leads to any more is gone.
func (s *Server) stat(n *node) (info, error) {
	st, err := s.vol.stat(s.tree.object(n))
	switch {
	case errors.Is(err, nfs.ErrStale):
		s.tree.lose(n)
	case err == nil && st.NLink == 0:
		s.tree.forget(n.key)
		err = nfs.ErrStale
	}
	return st, err
}

// post is the attributes of n, if there are any.
func (s *Server) post(n *node) nfs.PostOpAttr {
	st, err := s.stat(n)
	return nfs.PostOpAttr{Follows: err == nil, Attr: st.Attributes}
}

func postOf(st *info) nfs.PostOpAttr { return nfs.PostOpAttr{Follows: true, Attr: st.Attributes} }

// resolve is the node of a handle, with its attributes. Its user releases it. What
// is not where it was is looked for once, and once descriptors are made free.
func (s *Server) resolve(q *call, fh nfs.FH) (*node, info, error) {
	k, err := s.tree.authentic(fh)
	if err != nil {
		return nil, info{}, err
	}
	n, st, err := s.resolved(k, q.share)
	if err == nfs.ErrStale || exhausted(err) {
		if exhausted(err) {
			s.tree.relieve()
		}
		n, st, err = s.resolved(k, q.share)
	}
	return n, st, err
}

func (s *Server) resolved(k key, share origin.Share) (*node, info, error) {
	n, err := s.tree.resolve(k, share)
	if err != nil {
		return nil, info{}, err
	}
	st, err := s.stat(n)
	if err != nil {
		s.tree.release(n)
		return nil, info{}, err
	}
	return n, st, nil
}

// A change is what happens to one object between two looks at its attributes, with
// nothing else from clients in between (RFC 1813 §2.6, wcc_data).
type change struct {
	s      *Server
	n      *node
	before info
	wcc    nfs.WccData
}

// begin takes the object's lock.
func (s *Server) begin(n *node) (*change, error) {
	n.change.Lock()
	st, err := s.stat(n)
	if err != nil {
		n.change.Unlock()
		return nil, err
	}
	return &change{s: s, n: n, before: st, wcc: nfs.WccData{Before: nfs.Before(&st.Attributes)}}, nil
}

// end gives it back. It sets wcc.
func (c *change) end() {
	c.wcc.After = c.s.post(c.n)
	c.n.change.Unlock()
}

// checkName refuses what is no name of a file (RFC 1813 §3.2). "." and ".." are
// left to the procedures.
func (s *Server) checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\x00") || !s.vol.names(name) {
		return nfs.ErrAcces
	}
	if len(name) > s.nameMax() {
		return nfs.ErrNameTooLong
	}
	return nil
}

// nameMax is how long a name can be on any file system that is known.
func (s *Server) nameMax() int { return 255 }

func isDot(name string) bool { return name == "." || name == ".." }

// may fails if the caller has not the rights to n. For data, the owner always has:
// a client lets a program that has a file open go on when the mode changes.
func (s *Server) may(q *call, n *node, st *info, rights uint32) error {
	if st.Type == nfs.TypeReg && rights&mayExecute == 0 && s.vol.uid(q.creds) == st.UID {
		return nil
	}
	ask := func() error { return s.vol.access(q.creds, s.tree.object(n), rights) }
	if st.Type != nfs.TypeReg {
		return ask()
	}
	return s.tree.rulings(n).ask(q.creds, st, rights, time.Now(), ask)
}

// writable fails on a read-only export.
func (s *Server) writable() error {
	if s.cfg.ReadOnly {
		return nfs.ErrROFS
	}
	return nil
}

// stable brings names and attributes to disk (RFC 1813 §1.5), unless that was
// not wanted.
func (s *Server) stable(nodes ...*node) error {
	if s.cfg.Async {
		return nil
	}
	for _, n := range nodes {
		if err := s.sync(n); err != nil {
			return err
		}
	}
	return nil
}

// sync brings all of n to disk. When that fails, unstable data may be lost, of which
// the system tells only once.
func (s *Server) sync(n *node) error {
	err := s.tree.sync(n)
	if err != nil {
		s.newVerifier()
	}
	return err
}
