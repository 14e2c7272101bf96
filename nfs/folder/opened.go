// This file holds what nodes have open besides their objects: files and listings.

package folder

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

// opendir calls f with what lists n, alone.
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
		t.counted(n, 1)
		t.mu.Unlock()
	}
	return f(d)
}

// rulings is what is remembered of rights to n, which is in use.
func (t *tree) rulings(n *node) *rulings {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.rulings == nil {
		n.rulings = new(rulings)
	}
	return n.rulings
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
