// This file opens nodes again that have been closed: by the names that led to them, which
// have to lead to the same inodes.

package folder

import (
	"errors"
	"io/fs"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

// checked returns n, which is in use, if it is still in the export. A file that has left its
// place may have another hard link in the export, by which it is opened again.
func (t *tree) checked(n *node, share origin.Share) (*node, error) {
	t.mu.Lock()
	now := time.Now()
	fresh := n == t.root || now.Sub(n.seen) < insideFor
	o, isDir := n.object, n.isDir
	t.mu.Unlock()
	if fresh {
		return n, nil
	}
	err := t.vol.inside(o)
	switch {
	case err == nil:
		t.mu.Lock()
		n.seen = now
		t.mu.Unlock()
		return n, nil
	case !errors.Is(err, errOutside):
	case !isDir && t.linked(o):
		t.renew(n)
		t.release(n)
		found, err := t.reopen(n.key, share)
		if err == nfs.ErrStale {
			t.forget(n.key)
		}
		return found, err
	default:
		t.forget(n.key)
		err = nfs.ErrStale
	}
	t.release(n)
	return nil, err
}

// linked reports whether an object may still have a name.
func (t *tree) linked(o object) bool {
	st, err := t.vol.stat(o)
	return err != nil || st.NLink > 0
}

// renew replaces n by a new node, which its next user opens.
func (t *tree) renew(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes[n.key] == n {
		t.drop(n)
		n.gone = true
		t.note(n.key, n.at)
	}
}

// reopen opens the object of a key by the names that led to it, or else after a search. The
// caller releases the node.
func (t *tree) reopen(k key, share origin.Share) (*node, error) {
	n, err := t.descend(k, share)
	if err == nil || !misplaced(err) {
		return n, err
	}
	if err := t.search.find(k, share); err != nil {
		return nil, err
	}
	if n, err = t.descend(k, share); err != nil && misplaced(err) {
		return nil, nfs.ErrJukebox // it has been moved since
	}
	return n, err
}

// errLost says that the names that led to an object do not lead to it any more.
var errLost = errors.New("folder: not where it was")

func misplaced(err error) bool {
	return errors.Is(err, errLost) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, errMount) ||
		errors.Is(err, errOutside) || statOf(err) == nfs.ErrNotDir
}

// descend opens the object of k, starting at the nearest directory above it that is open.
func (t *tree) descend(k key, share origin.Share) (*node, error) {
	var path []place // from k up
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

	from, err := t.checked(from, share)
	if err == nfs.ErrStale {
		err = errLost // k may have been moved out of that directory before
	}
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

// step opens a name in a directory, if it is the object of the key want.
func (t *tree) step(dir *node, at place, want key) (*node, error) {
	o, st, err := t.vol.lookup(serverCreds, t.object(dir), at.name)
	if err != nil {
		return nil, err
	}
	if st.key != want {
		o.close()
		return nil, errLost
	}
	return t.adopt(o, &st, at), nil
}
