// This file lists directories whose positions do not last: each entry has a
// cookie made of its name, and entries come in the order of these. So a listing
// goes on where it was, whatever was deleted or made meanwhile, and after the
// server was started again.

package folder

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// A hashedDir keeps the entries from a listing's start until it is closed, or the next
// one starts.
type hashedDir struct {
	names   func(func(*dirent) bool) error // all entries, with no cookies
	free    func()
	entries []dirent
}

// The cookies of "." and "..", which come first, and the least of all others.
const (
	dotCookie = 1 + iota
	dotDotCookie
	firstCookie
)

func cookieOf(name string) uint64 {
	switch name {
	case ".":
		return dotCookie
	case "..":
		return dotDotCookie
	}
	sum := sha256.Sum256([]byte(name))
	return max(binary.BigEndian.Uint64(sum[:])>>1, firstCookie)
}

func (d *hashedDir) read(cookie uint64, f func(*dirent) bool) (end bool, err error) {
	if cookie == 0 || d.entries == nil {
		if err := d.load(); err != nil {
			return false, err
		}
	}
	at, _ := slices.BinarySearchFunc(d.entries, cookie, func(e dirent, c uint64) int {
		return cmp.Or(cmp.Compare(e.cookie, c), -1) // behind it
	})
	for i := at; i < len(d.entries); i++ {
		e := d.entries[i]
		if !f(&e) {
			return false, nil
		}
	}
	return true, nil
}

func (d *hashedDir) load() error {
	d.entries = []dirent{}
	err := d.names(func(e *dirent) bool {
		e.cookie = cookieOf(e.name)
		d.entries = append(d.entries, *e)
		return true
	})
	if err != nil {
		d.entries = nil
		return err
	}
	slices.SortFunc(d.entries, func(a, b dirent) int {
		return cmp.Or(cmp.Compare(a.cookie, b.cookie), cmp.Compare(a.name, b.name))
	})
	// Two names of one cookie do not happen by chance. If they do, one moves up.
	for i := 1; i < len(d.entries); i++ {
		if last := d.entries[i-1].cookie; d.entries[i].cookie <= last {
			d.entries[i].cookie = last + 1
		}
	}
	return nil
}

func (d *hashedDir) close() {
	d.entries = nil
	if d.free != nil {
		d.free()
	}
}
