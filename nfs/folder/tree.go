// This file holds the tree of nodes: which are remembered, what they have open,
// and how one that is used again is opened again.

package folder

import (
	"container/list"
	"errors"
	"io/fs"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

const (
	// believed is for how long a directory is taken to be in the folder without
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
	vol    volume
	sealer sealer
	search searcher

	maxNames, maxOpen int

	mu     sync.Mutex
	root   *node
	nodes  map[key]*node
	names  list.List // of nodes, the one used last in front; not the root
	opened list.List // of nodes with something open, in the same order
	count  int       // of descriptors
}

func newTree(v volume, c *Config) (*tree, error) {
	st, err := v.stat(v.root())
	if err != nil {
		return nil, err
	}
	t := &tree{
		vol: v, sealer: newSealer(st.key),
		maxNames: c.MaxNames, maxOpen: min(c.MaxOpen, v.maxOpen()),
		nodes: make(map[key]*node),
	}
	t.root = &node{key: st.key, fh: t.sealer.seal(st.key), object: v.root(), refs: 1}
	t.nodes[st.key] = t.root
	t.search.start(t)
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

// resolve returns the node of a handle, ready for use. The caller releases it. The
// error is a nfs.Stat or one of the system.
func (t *tree) resolve(fh nfs.FH) (*node, error) {
	k, ok := peek(fh)
	if !ok {
		return nil, nfs.ErrBadHandle
	}
	t.mu.Lock()
	n := t.nodes[k]
	if n == nil || string(n.fh[:]) != string(fh) {
		t.mu.Unlock()
		if _, err := t.sealer.parse(fh); err != nil {
			return nil, err
		}
		if err := t.search.find(k); err != nil {
			return nil, err
		}
		return t.acquire(k)
	}
	t.mu.Unlock()
	return t.acquire(k)
}

// acquire returns the node of a key that was there, ready for use.
func (t *tree) acquire(k key) (*node, error) {
	t.mu.Lock()
	if n := t.nodes[k]; n != nil && n.object != nil {
		t.hold(n)
		t.mu.Unlock()
		return t.proven(n)
	}
	t.mu.Unlock()
	return t.reopen(k)
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

// adopt returns the node of an object that was found under a name, ready for use.
// The object is the tree's then.
func (t *tree) adopt(o object, k key, at place) *node {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.note(k, at)
	t.hold(n)
	switch {
	case n.object == nil:
		n.object = o
		t.counted(n, 1)
	case o != n.object:
		o.close()
	}
	return n
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

// moved remembers that the object of a key is elsewhere now.
func (t *tree) moved(k key, at place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(k, at)
	t.trim()
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

// proven returns n, which is held, if it is a directory that is still in the
// folder, or no directory.
func (t *tree) proven(n *node) (*node, error) {
	t.mu.Lock()
	now := time.Now()
	fresh := n == t.root || n.seen.IsZero() || now.Sub(n.seen) < believed
	o := n.object
	t.mu.Unlock()
	if fresh {
		return n, nil
	}
	if err := t.vol.inside(o); err != nil {
		if errors.Is(err, errOutside) {
			t.forget(n.key)
			err = nfs.ErrStale
		}
		t.release(n)
		return nil, err
	}
	t.mu.Lock()
	n.seen = now
	t.mu.Unlock()
	return n, nil
}

// isDir remembers that n is a directory, which was in the folder just now.
func (t *tree) isDir(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n.seen = time.Now()
}

// reopen finds the object of a key by the names that led to it, or else by looking
// everywhere.
func (t *tree) reopen(k key) (*node, error) {
	n, err := t.descend(k)
	if err == nil || !misplaced(err) {
		return n, err
	}
	if err := t.search.find(k); err != nil {
		return nil, err
	}
	if n, err = t.descend(k); err != nil && misplaced(err) {
		return nil, nfs.ErrJukebox // it was there a moment ago, and is on its way elsewhere
	}
	return n, err
}

// errLost says that the names that led to an object do not any more.
var errLost = errors.New("folder: not where it was")

func misplaced(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errMount) ||
		errors.Is(err, errOutside) || statOf(err) == nfs.ErrNotDir
}

// descend opens what leads to k, from the next directory above that is open.
func (t *tree) descend(k key) (*node, error) {
	var path []place // of the way up
	var from *node
	t.mu.Lock()
	for at := k; from == nil; {
		n := t.nodes[at]
		if n == t.root || n != nil && n.object != nil && len(path) > 0 {
			from = n
			t.hold(from)
			break
		}
		if n == nil || n.at.name == "" || len(path) == maxPath {
			t.mu.Unlock()
			return nil, errLost
		}
		path = append(path, n.at)
		at = n.at.dir
	}
	t.mu.Unlock()

	from, err := t.proven(from)
	for i := len(path) - 1; i >= 0 && err == nil; i-- {
		want := k
		if i > 0 {
			want = path[i-1].dir
		}
		dir := from
		from, err = t.step(dir, path[i], want)
		t.release(dir)
	}
	return from, err
}

// maxPath bounds the names between the root and an object.
const maxPath = 4096

// step opens a name in a directory, which is to be the object of a key.
func (t *tree) step(dir *node, at place, want key) (*node, error) {
	o, st, err := t.vol.lookup(serverCreds, t.object(dir), at.name)
	if err != nil {
		return nil, err
	}
	if st.key != want {
		o.close()
		return nil, errLost
	}
	n := t.adopt(o, st.key, at)
	if st.Type == nfs.TypeDir {
		t.isDir(n)
	}
	return n, nil
}

// object is what a node that is in use refers to.
func (t *tree) object(n *node) object {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.object
}

// file returns the open file of n, which is in use: it stays open as long.
func (t *tree) file(n *node, which int) (file, error) {
	t.mu.Lock()
	f, o := n.files[which], n.object
	t.mu.Unlock()
	if f != nil {
		return f, nil
	}
	f, err := t.vol.open(o, which == forWriting)
	if err != nil {
		return nil, err
	}
	return t.keep(n, which, f), nil
}

// keep makes f the open file of n, or closes it if there is one.
func (t *tree) keep(n *node, which int, f file) file {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := n.files[which]; have != nil {
		f.close()
		return have
	}
	n.files[which] = f
	t.counted(n, 1)
	return f
}

// list calls f with what lists n, alone.
func (t *tree) list(n *node, f func(dirReader) error) error {
	n.listing.Lock()
	defer n.listing.Unlock()
	t.mu.Lock()
	d, o := n.dir, n.object
	t.mu.Unlock()
	if d == nil {
		var err error
		if d, err = t.vol.readDir(o); err != nil {
			return err
		}
		t.mu.Lock()
		n.dir = d
		t.counted(n, 1)
		t.mu.Unlock()
	}
	return f(d)
}

// sweep closes what has not been used for a while.
func (t *tree) sweep(now time.Time) {
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

// sync brings n, which is in use, to disk, by an open file if there is one.
func (t *tree) sync(n *node) error {
	t.mu.Lock()
	f, o := n.files[forWriting], n.object
	if f == nil {
		f = n.files[forReading]
	}
	t.mu.Unlock()
	if f != nil {
		return f.sync()
	}
	return t.vol.sync(o)
}
