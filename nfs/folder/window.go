// This file lists directories of file systems whose directory positions are not stable. The
// cookie of an entry is a hash of its name, and entries are listed in the order of cookies.
// So a listing can continue whatever entries come and go, and after a restart of the
// server.

package folder

import (
	"cmp"
	"container/list"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

// A window is a part of a directory as it was when it was read: the entries whose cookies
// follow a certain one. It does not change.
type window struct {
	dir        key
	from, upto uint64 // cookies of entries are greater than from, and at most upto
	last       bool   // the directory had no entries after these
	entries    []dirent
	size       int64 // octets

	mtime, ctime nfs.Time // of the directory, before it was read
	loaded       time.Time

	// Guarded by listings.mu.
	share   origin.Share // that it was read for
	used    time.Time
	element *list.Element
}

// The cookies of "." and "..", which come first, and the least of other names.
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

// entrySize is the approximate memory of an entry without its name, in octets.
const entrySize = 64

func sizeOf(e *dirent) int64 { return entrySize + int64(len(e.name)) }

// readWindow reads the entries of a directory after a cookie, as many as fit in limit
// octets. It uses up to twice as much memory meanwhile.
func readWindow(r dirReader, cookie uint64, limit int64) (*window, error) {
	w := &window{from: cookie, upto: math.MaxUint64, last: true}
	_, err := r.read(0, func(e *dirent) bool {
		if e.cookie = cookieOf(e.name); e.cookie > w.from && e.cookie <= w.upto {
			w.entries = append(w.entries, *e)
			if w.size += sizeOf(e); w.size > limit+limit/4 {
				w.cut(limit)
			}
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	w.cut(limit)
	w.entries = slices.Clone(w.entries) // without spare capacity
	// Two names with one cookie do not occur by chance. If they do, one moves up.
	for i := 1; i < len(w.entries); i++ {
		if last := w.entries[i-1].cookie; w.entries[i].cookie <= last {
			w.entries[i].cookie = last + 1
		}
	}
	return w, nil
}

// cut sorts the entries and keeps as many as fit in limit octets, but at least one.
func (w *window) cut(limit int64) {
	slices.SortFunc(w.entries, func(a, b dirent) int {
		return cmp.Or(cmp.Compare(a.cookie, b.cookie), cmp.Compare(a.name, b.name))
	})
	w.size = 0
	for i := range w.entries {
		size := sizeOf(&w.entries[i])
		if i > 0 && w.size+size > limit {
			clear(w.entries[i:])
			w.entries = w.entries[:i]
			w.upto, w.last = w.entries[i-1].cookie, false
			return
		}
		w.size += size
	}
}

// covers reports whether the first entry after a cookie is in the window.
func (w *window) covers(cookie uint64) bool {
	return cookie >= w.from && (w.last || cookie < w.upto)
}

// read calls f for the entries after a cookie until f returns false. It reports whether it
// has come to the end of the directory.
func (w *window) read(cookie uint64, f func(*dirent) bool) (end bool) {
	at, _ := slices.BinarySearchFunc(w.entries, cookie, func(e dirent, c uint64) int {
		return cmp.Or(cmp.Compare(e.cookie, c), -1) // the first after c
	})
	for i := at; i < len(w.entries); i++ {
		e := w.entries[i]
		if !f(&e) {
			return false
		}
	}
	return w.last
}
