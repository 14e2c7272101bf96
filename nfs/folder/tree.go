// This file holds the tree of nodes: which are remembered, what they have open,
// and how one that is used again is opened again.

package folder

import (
	"container/list"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

const (
	// believed is for how long an object is taken to be in the folder without
	// looking.
	believed = time.Second

	// dataIdle and idle are after what time without use data and objects are
	// closed: a program that is open for writing cannot be executed on this
	// machine, and a file that is open keeps its space when it is removed.
	dataIdle = 5 * time.Second
	idle     = time.Minute
)

// A tree holds the nodes. Its methods are for many goroutines.
type tree struct {
	vol      volume
	sealer   sealer
	search   searcher
	listings listings

	maxNames, maxOpen int

	mu     sync.Mutex
	root   *node
	nodes  map[key]*node
	names  list.List // of nodes, the one used last in front; not the root
	opened list.List // of nodes with something open, in the same order
	count  int       // of descriptors
}

func newTree(v volume, c *Config, secret []byte) (*tree, error) {
	st, err := v.stat(v.root())
	if err != nil {
		return nil, err
	}
	t := &tree{
		vol: v, sealer: newSealer(secret, &st),
		maxNames: c.MaxNames, maxOpen: min(c.MaxOpen, v.maxOpen()),
		nodes: make(map[key]*node),
	}
	t.root = &node{key: st.key, fh: t.sealer.seal(st.key), object: v.root(), refs: 1}
	t.nodes[st.key] = t.root
	t.search.start(t)
	t.listings.start()
	return t, nil
}

// close frees everything. Nobody uses the tree any more.
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

// authentic returns what a handle names, which may be gone: NFS3ERR_STALE for one that
// this server has not made. It costs a check, and never a search.
func (t *tree) authentic(fh nfs.FH) (key, error) {
	k, err := peek(fh)
	if err != nil {
		return key{}, err
	}
	t.mu.Lock()
	n := t.nodes[k]
	t.mu.Unlock()
	var real handle
	if n != nil {
		real = n.fh // it does not change
	} else {
		real = t.sealer.seal(k)
	}
	if !real.equal(fh) {
		return key{}, nfs.ErrStale
	}
	return k, nil
}

// resolve returns the node of the key of an authentic handle, ready for use on behalf of a
// share.
// The caller releases it. The error is a nfs.Stat or one of the system.
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

// acquire returns the node of a key that was there, ready for use.
func (t *tree) acquire(k key, share origin.Share) (*node, error) {
	t.mu.Lock()
	if n := t.nodes[k]; n != nil && n.object != nil {
		t.hold(n)
		t.mu.Unlock()
		return t.proven(n, share)
	}
	t.mu.Unlock()
	return t.reopen(k, share)
}

// hold counts a use of n, under the lock.
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
		t.closing(n, n.closeAll)
	}
	t.trim()
}

// closing does f, which closes something of n, and keeps count.
func (t *tree) closing(n *node, f func()) {
	t.count -= n.opened()
	f()
	left := n.opened()
	t.count += left
	if left == 0 && n.inOpened != nil {
		t.opened.Remove(n.inOpened)
		n.inOpened = nil
	}
}

// trim keeps to the limits, by what has not been used for longest.
func (t *tree) trim() {
	for e := t.opened.Back(); e != nil && t.count > t.maxOpen; {
		n := e.Value.(*node)
		e = e.Prev()
		if n.refs == 0 {
			t.closing(n, n.closeAll)
		}
	}
	for e := t.names.Back(); e != nil && t.names.Len() > t.maxNames; {
		n := e.Value.(*node)
		e = e.Prev()
		if n.refs == 0 {
			t.closing(n, n.closeAll)
			t.drop(n)
		}
	}
}

// relieve closes half of what is open and not in use, when there are no descriptors
// left for other things.
func (t *tree) relieve() {
	t.mu.Lock()
	defer t.mu.Unlock()
	goal := t.count / 2
	for e := t.opened.Back(); e != nil && t.count > goal; {
		n := e.Value.(*node)
		e = e.Prev()
		if n.refs == 0 {
			t.closing(n, n.closeAll)
		}
	}
}

// drop takes n out of the tree. It is closed already, or will be by its last user.
func (t *tree) drop(n *node) {
	if t.nodes[n.key] == n {
		delete(t.nodes, n.key)
	}
	if n.inNames != nil {
		t.names.Remove(n.inNames)
		n.inNames = nil
	}
}

// adopt returns the node of an object that was found at a place, ready for use. The
// object is the tree's then. It is believed to be in the folder for as long as the
// directory is that it was found in; without a place, from now on.
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
		t.counted(n, 1)
	case o != n.object:
		o.close()
	}
	return n
}

// seenAt is when what is at a place was seen to be in the folder, under the lock.
func (t *tree) seenAt(at place) time.Time {
	if at.name == "" || at.dir == t.root.key {
		return time.Now()
	}
	if dir := t.nodes[at.dir]; dir != nil {
		return dir.seen
	}
	return time.Time{}
}

// counted keeps count of d descriptors that n has opened.
func (t *tree) counted(n *node, d int) {
	t.count += d
	if n.inOpened == nil && n != t.root {
		n.inOpened = t.opened.PushFront(n)
	}
	t.trim()
}

// note remembers where the object of a key is, under the lock.
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

// remember remembers where the object of a key is, and returns its handle.
func (t *tree) remember(k key, at place) handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	fh := t.note(k, at).fh
	t.trim()
	return fh
}

// forget ends the node of an object to which no name leads any more: its handle is
// stale, and its space is free when its last user is done.
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
		t.closing(n, n.closeAll)
	}
}

// lose ends the node of an object that is not where it was, as far as an object
// that goes by its name can tell: it is looked for when its handle is used again.
func (t *tree) lose(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n != t.root && !n.gone {
		t.drop(n)
		n.gone = true
	}
}

// sweep closes what has not been used for a while.
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
			t.closing(n, n.closeAll)
		case unused >= dataIdle:
			t.closing(n, n.closeData)
		}
	}
	if t.root.refs == 1 && now.Sub(t.root.used) >= dataIdle {
		t.closing(t.root, t.root.closeData)
	}
}
