// This file holds what the server knows of an object: where it was seen last, and
// what it has open of it.

package folder

import (
	"container/list"
	"sync"
	"time"
)

// A node is a file that clients may have a handle of. While somebody uses it
// (refs), what it has open stays open.
type node struct {
	key key
	fh  handle

	// change is held around what changes the object, so that what the reply says
	// of before and after is about this change and no other one of a client.
	change sync.Mutex

	// listing is held while dir is used.
	listing sync.Mutex

	// Of the tree, under its lock.
	refs     int
	gone     bool          // no name leads to it any more: to be closed
	at       place         // where it was seen last
	object   object        // nil: to be found again by at
	files    [2]file       // open for reading, and for writing
	dir      dirReader     // open for listing
	rulings  *rulings      // who may read or write, of late
	seen     time.Time     // when it was last seen to be in the folder
	isDir    bool          // as it was when object was opened
	used     time.Time     // when it was used last
	inNames  *list.Element // in tree.names; nil: not to be dropped
	inOpened *list.Element // in tree.opened, if it has something open
}

// A place is a name in a directory.
type place struct {
	dir  key
	name string
}

// The two of node.files.
const (
	forReading = 0
	forWriting = 1
)

// opened is how many descriptors the node holds.
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

// closeData closes what is open for data. The tree's lock is held and nobody uses
// the node.
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
