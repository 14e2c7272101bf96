// This file holds the tree of nodes: the objects that the server remembers, and those that
// it has open.
//
// A call uses the node of a handle in these steps:
//
//  1. authentic checks the seal of the handle, and returns the key of its object.
//  2. acquire returns the node, and counts the use (node.refs). If the node has nothing
//     open, reopen opens its object by the names that led to it (reach.go), or else after a
//     search (search.go).
//  3. checked makes sure that the object is still in the export, unless it did so within the
//     last second.
//  4. The call works on the object, and on files that are opened for data (opened.go). They
//     stay open as long as the node is used.
//  5. release ends the use. The tree closes unused nodes when there are too many, and after
//     a while (sweep).
//
// Locking: tree.mu guards the fields of the tree below it, and the fields of nodes from refs
// on. Objects and files are closed under it, but it is never held for other system calls.
// node.change is locked around a change of an object. A call that changes two directories
// locks them in the order of their handles (beginBoth). A call that changes a directory and
// a file in it locks the directory first. node.listing is locked while a directory is read,
// under no other lock. tree.mu may be locked under node.change and node.listing.

package folder

import (
	"container/list"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

const (
	// insideFor is for how long an object counts as being in the export after a check.
	insideFor = time.Second

	// dataIdle and idle are the times after which unused files and objects are closed. A
	// file that is open for writing cannot be executed on this machine, and a file that
	// is open keeps its space after it was removed.
	dataIdle = 5 * time.Second
	idle     = time.Minute
)

// A tree holds the nodes. Its methods may be called by many goroutines.
type tree struct {
	vol      volume
	sealer   sealer
	search   searcher
	listings listings

	maxNames, maxOpen int

	mu     sync.Mutex
	root   *node
	nodes  map[key]*node
	names  list.List // of nodes, the latest used first, without the root
	opened list.List // of nodes that have something open, in the same order
	count  int       // of open descriptors
}

func newTree(v volume, c *Config, secret []byte) (*tree, error) {
	st, err := v.stat(v.root())
	if err != nil {
		return nil, err
	}
	t := &tree{
		vol: v, sealer: newSealer(secret, &st, c.Mark),
		maxNames: c.MaxNames, maxOpen: min(c.MaxOpen, v.maxOpen()),
		nodes: make(map[key]*node),
	}
	t.root = &node{key: st.key, fh: t.sealer.seal(st.key), object: v.root(), refs: 1}
	t.nodes[st.key] = t.root
	t.search.start(t)
	t.listings.start()
	return t, nil
}

// close frees everything. The tree is not in use any more.
func (t *tree) close() {
	t.search.stop()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.nodes {
		if n == t.root {
			n.closeData() // the volume closes its root
		} else {
			n.closeAll()
		}
	}
	t.nodes = nil
}

// authentic returns the key of a handle's object, which may not exist any more. A handle
// that this server has not made is NFS3ERR_STALE. It never searches.
func (t *tree) authentic(fh nfs.FH) (key, error) {
	k, err := t.sealer.parse(fh)
	if err != nil {
		return key{}, err
	}
	t.mu.Lock()
	n := t.nodes[k]
	t.mu.Unlock()
	var real handle
	if n != nil {
		real = n.fh // never changes
	} else {
		real = t.sealer.seal(k)
	}
	if !real.equal(fh) {
		return key{}, nfs.ErrStale
	}
	return k, nil
}

// resolve returns the node of the key of an authentic handle, for a call of a share. The
// caller releases it. An error is an nfs.Stat or one of the system.
func (t *tree) resolve(k key, share origin.Share) (*node, error) {
	t.mu.Lock()
	known := t.nodes[k] != nil
	t.mu.Unlock()
	if !known {
		if err := t.search.find(k, share); err != nil {
			return nil, err
		}
	}
	return t.acquire(k, share)
}

// acquire returns the node of a key that the tree knows. The caller releases it.
func (t *tree) acquire(k key, share origin.Share) (*node, error) {
	t.mu.Lock()
	if n := t.nodes[k]; n != nil && n.object != nil {
		t.hold(n)
		t.mu.Unlock()
		return t.checked(n, share)
	}
	t.mu.Unlock()
	return t.reopen(k, share)
}

// hold counts a use of n. t.mu is held.
func (t *tree) hold(n *node) {
	n.refs++
	if n.inNames != nil {
		t.names.MoveToFront(n.inNames)
	}
	if n.inOpened != nil {
		t.opened.MoveToFront(n.inOpened)
	}
}

// release ends a use of n.
func (t *tree) release(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.refs--
	n.used = time.Now()
	if n.gone && n.refs == 0 {
		t.closeOf(n, n.closeAll)
	}
	t.trim()
}

// closeOf calls f, which closes something of n, and updates the count. t.mu is held.
func (t *tree) closeOf(n *node, f func()) {
	t.count -= n.opened()
	f()
	left := n.opened()
	t.count += left
	if left == 0 && n.inOpened != nil {
		t.opened.Remove(n.inOpened)
		n.inOpened = nil
	}
}

// trim enforces the limits. It closes and forgets the nodes that have been unused for
// longest. t.mu is held.
func (t *tree) trim() {
	for e := t.opened.Back(); e != nil && t.count > t.maxOpen; {
		n := e.Value.(*node)
		e = e.Prev()
		if n.refs == 0 {
			t.closeOf(n, n.closeAll)
		}
	}
	for e := t.names.Back(); e != nil && t.names.Len() > t.maxNames; {
		n := e.Value.(*node)
		e = e.Prev()
		if n.refs == 0 {
			t.closeOf(n, n.closeAll)
			t.drop(n)
		}
	}
}

// relieve closes half of what is open and unused, after the process has run out of
// descriptors.
func (t *tree) relieve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	goal := t.count / 2
	for e := t.opened.Back(); e != nil && t.count > goal; {
		n := e.Value.(*node)
		e = e.Prev()
		if n.refs == 0 {
			t.closeOf(n, n.closeAll)
		}
	}
}

// drop removes n from the tree. Its last user closes it, if it is not closed. t.mu is held.
func (t *tree) drop(n *node) {
	if t.nodes[n.key] == n {
		delete(t.nodes, n.key)
	}
	if n.inNames != nil {
		t.names.Remove(n.inNames)
		n.inNames = nil
	}
}

// adopt returns the node of an object that was found at a place, and owns the object from
// then on. The caller releases the node. The object counts as being in the export as long
// as its directory does, and without a place from now on.
func (t *tree) adopt(o object, st *info, at place) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.note(st.key, at)
	t.hold(n)
	n.isDir = st.Type == nfs.TypeDir
	if seen := t.seenAt(at); seen.After(n.seen) {
		n.seen = seen
	}
	switch {
	case n.object == nil:
		n.object = o
		t.addOpen(n, 1)
	case o != n.object:
		o.close()
	}
	return n
}

// seenAt is the time at which what is at a place was known to be in the export. t.mu is
// held.
func (t *tree) seenAt(at place) time.Time {
	if at.name == "" || at.dir == t.root.key {
		return time.Now()
	}
	if dir := t.nodes[at.dir]; dir != nil {
		return dir.seen
	}
	return time.Time{}
}

// addOpen adds d descriptors that n has opened to the count. t.mu is held.
func (t *tree) addOpen(n *node, d int) {
	t.count += d
	if n.inOpened == nil && n != t.root {
		n.inOpened = t.opened.PushFront(n)
	}
	t.trim()
}

// note remembers the place of a key's object, and returns its node. t.mu is held.
func (t *tree) note(k key, at place) *node {
	n := t.nodes[k]
	if n == nil {
		n = &node{key: k, fh: t.sealer.seal(k), used: time.Now()}
		t.nodes[k] = n
		n.inNames = t.names.PushFront(n)
	} else if n.inNames != nil {
		t.names.MoveToFront(n.inNames)
	}
	if n != t.root && at.name != "" {
		n.at = at
	}
	return n
}

// remember remembers the place of a key's object, and returns its handle.
func (t *tree) remember(k key, at place) handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	fh := t.note(k, at).fh
	t.trim()
	return fh
}

// forget removes the node of an object that has no name any more. Its handle becomes
// stale, and its last user frees its space.
func (t *tree) forget(k key) {
	t.search.gone(k)
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.nodes[k]
	if n == nil || n == t.root {
		return
	}
	t.drop(n)
	n.gone = true
	if n.refs == 0 {
		t.closeOf(n, n.closeAll)
	}
}

// lose removes the node of an object that is not at its place. Only the portable backend,
// whose objects are names, finds that out in use. The object is searched for when its
// handle is used again.
func (t *tree) lose(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n != t.root && !n.gone {
		t.drop(n)
		n.gone = true
	}
}

// sweep closes what has been unused for a while.
func (t *tree) sweep(now time.Time) {
	t.listings.sweep(now)
	t.mu.Lock()
	defer t.mu.Unlock()
	for e := t.opened.Back(); e != nil; {
		n := e.Value.(*node)
		e = e.Prev()
		switch unused := now.Sub(n.used); {
		case n.refs > 0:
		case unused >= idle:
			t.closeOf(n, n.closeAll)
		case unused >= dataIdle:
			t.closeOf(n, n.closeData)
		}
	}
	if t.root.refs == 1 && now.Sub(t.root.used) >= dataIdle {
		t.closeOf(t.root, t.root.closeData)
	}
}
