// This file holds what procedures share: attributes, weak cache consistency data, names,
// and permissions.

package folder

import (
	"errors"
	"strings"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

// stat returns the present attributes of n. An object without a name is stale.
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

// post returns the attributes of n, if they can be had.
func (s *Server) post(n *node) nfs.PostOpAttr {
	st, err := s.stat(n)
	return nfs.PostOpAttr{Follows: err == nil, Attr: st.Attributes}
}

func postOf(st *info) nfs.PostOpAttr { return nfs.PostOpAttr{Follows: true, Attr: st.Attributes} }

// resolve returns the node of a handle, with its attributes. The caller releases it. If the
// object is not at its place, or descriptors are missing, it tries once more.
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

// A change of an object, with its attributes before and after. No other client changes the
// object in between (RFC 1813 §2.6, wcc_data).
type change struct {
	s      *Server
	n      *node
	before info
	wcc    nfs.WccData
}

// begin begins a change of n: it locks n.change, until end.
func (s *Server) begin(n *node) (*change, error) {
	n.change.Lock()
	st, err := s.stat(n)
	if err != nil {
		n.change.Unlock()
		return nil, err
	}
	return &change{s: s, n: n, before: st, wcc: nfs.WccData{Before: nfs.Before(&st.Attributes)}}, nil
}

// end unlocks the object and completes wcc.
func (c *change) end() {
	c.wcc.After = c.s.post(c.n)
	c.n.change.Unlock()
}

// checkName refuses strings that cannot name a file (RFC 1813 §3.2). It permits "." and
// "..", which procedures treat differently.
func (s *Server) checkName(name string) error {
	if name == "" || strings.ContainsAny(name, "/\x00") || !s.vol.names(name) {
		return nfs.ErrAcces
	}
	if len(name) > s.nameMax() {
		return nfs.ErrNameTooLong
	}
	return nil
}

// nameMax is the limit of names, in octets, of all known file systems.
func (s *Server) nameMax() int { return 255 }

func isDot(name string) bool { return name == "." || name == ".." }

// checkRights returns an error if the caller does not have the rights to n. The owner of a file
// always may access its data, because clients do not check again when the mode of an open
// file changes.
func (s *Server) checkRights(q *call, n *node, st *info, rights uint32) error {
	if st.Type == nfs.TypeReg && rights&mayExecute == 0 && s.vol.uid(q.creds) == st.UID {
		return nil
	}
	ask := func() error { return s.vol.access(q.creds, s.tree.object(n), rights) }
	if st.Type != nfs.TypeReg {
		return ask()
	}
	return s.tree.rulings(n).ask(q.creds, st, rights, time.Now(), ask)
}

// writable returns an error if the export is read-only.
func (s *Server) writable() error {
	if s.rules.Load().ReadOnly {
		return nfs.ErrROFS
	}
	return nil
}

// stable syncs names and attributes to disk (RFC 1813 §1.5), unless Config.Async is set.
func (s *Server) stable(nodes ...*node) error {
	if s.rules.Load().Async {
		return nil
	}
	for _, n := range nodes {
		if err := s.sync(n); err != nil {
			return err
		}
	}
	return nil
}

// sync syncs all of n. If that fails, unstable data may be lost, and the system reports that
// only once.
func (s *Server) sync(n *node) error {
	err := s.tree.sync(n)
	if err != nil {
		s.newVerifier()
	}
	return err
}
