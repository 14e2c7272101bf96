// This file is how a node is reached again that has nothing open: by the names that
// led to it, which have to lead to the same inode still.

package folder

import (
	"errors"
	"io/fs"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

// proven returns n, which is held, if it is still in the folder. A file that is not
// where it was may have another name there.
func (t *tree) proven(n *node, share origin.Share) (*node, error) {
	t.mu.Lock()
	now := time.Now()
	fresh := n == t.root || now.Sub(n.seen) < believed
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

// linked reports whether a name may still lead to an object.
func (t *tree) linked(o object) bool {
	st, err := t.vol.stat(o)
	return err != nil || st.NLink > 0
}

// renew has the next user of n's handle open it anew, by its names.
func (t *tree) renew(n *node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.nodes[n.key] == n {
		t.drop(n)
		n.gone = true
		t.note(n.key, n.at)
	}
}

// reopen finds the object of a key by the names that led to it, or else by looking
// everywhere.
func (t *tree) reopen(k key, share origin.Share) (*node, error) {
	n, err := t.descend(k, share)
	if err == nil || !misplaced(err) {
		return n, err
	}
	if err := t.search.find(k, share); err != nil {
		return nil, err
	}
	if n, err = t.descend(k, share); err != nil && misplaced(err) {
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
func (t *tree) descend(k key, share origin.Share) (*node, error) {
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

	from, err := t.proven(from, share)
	if err == nfs.ErrStale {
		err = errLost // that directory is gone, which says nothing of k
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
	return t.adopt(o, &st, at), nil
}
