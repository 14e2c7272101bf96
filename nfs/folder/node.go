// This file holds the nodes: what the server knows of an object, and has open of it.

package folder

import (
	"container/list"
	"sync"
	"time"
)

// A node is an object that clients may have a handle of. While it is used (refs), what it
// has open stays open.
type node struct {
	key key
	fh  handle

	// change is locked around a change of the object, so that the attributes in the reply
	// are those before and after this change of one client.
	change sync.Mutex

	// listing is locked while dir is used.
	listing sync.Mutex

	// Guarded by tree.mu.
	refs     int
	gone     bool          // it has no name any more: its last user closes it
	at       place         // its last known place
	object   object        // nil: not open
	files    [2]file       // open for reading, and for writing
	dir      dirReader     // open for listing
	rulings  *rulings      // cached permissions
	seen     time.Time     // when it was last known to be in the export
	isDir    bool          // when object was opened
	used     time.Time     // when its last use ended
	inNames  *list.Element // in tree.names; nil: never dropped
	inOpened *list.Element // in tree.opened; nil: nothing is open
}

// A place is a name in a directory.
type place struct {
	dir  key
	name string
}

// Indices of node.files.
const (
	forReading = 0
	forWriting = 1
)

// opened is the number of descriptors that the node holds.
func (n *node) opened() int {
	c := 0
	if n.object != nil {
		c++
	}
	for _, f := range n.files {
		if f != nil {
			c++
		}
	}
	if n.dir != nil {
		c++
	}
	return c
}

// closeData closes what is open for data. tree.mu is held, and the node is not used.
func (n *node) closeData() {
	for i, f := range n.files {
		if f != nil {
			f.close()
			n.files[i] = nil
		}
	}
	if n.dir != nil {
		n.dir.close()
		n.dir = nil
	}
	n.rulings = nil
}

func (n *node) closeAll() {
	n.closeData()
	if n.object != nil {
		n.object.close()
		n.object = nil
	}
}
