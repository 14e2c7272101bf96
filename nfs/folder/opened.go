// This file opens nodes for data: files and directories.

package folder

// object returns the object of n, which is in use.
func (t *tree) object(n *node) object {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n.object
}

// file returns the open file of n, which is in use and stays open as long.
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

// keep makes f the open file of n. If n has one, keep closes f and returns that.
func (t *tree) keep(n *node, which int, f file) file {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := n.files[which]; have != nil {
		f.close()
		return have
	}
	n.files[which] = f
	t.addOpen(n, 1)
	return f
}

// opendir calls f with the reader of n. It waits for other calls that list n.
func (t *tree) opendir(n *node, f func(dirReader) error) error {
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
		t.addOpen(n, 1)
		t.mu.Unlock()
	}
	return f(d)
}

// rulings returns the cached permissions of n, which is in use.
func (t *tree) rulings(n *node) *rulings {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.rulings == nil {
		n.rulings = new(rulings)
	}
	return n.rulings
}

// sync syncs n, which is in use, by an open file if there is one.
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
