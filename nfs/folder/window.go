// This file lists directories whose positions do not last: each entry has a cookie
// made of its name, and entries come in the order of these. So a listing goes on
// where it was, whatever was deleted or made meanwhile, and after the server was
// started again.

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

// A window is a part of a directory, or all of it, as it was when it was read: the
// entries with the cookies that follow one. It does not change.
type window struct {
	dir        key
	from, upto uint64 // entries have greater cookies than from, and none than upto
	last       bool   // no entries were behind it
	entries    []dirent
	size       int64 // octets

	mtime, ctime nfs.Time // of the directory, before it was read
	loaded       time.Time

	// Of listings, under its lock.
	share   origin.Share // for which it was read
	used    time.Time
	element *list.Element
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

// entrySize is how many octets an entry takes besides its name, about.
const entrySize = 64

func sizeOf(e *dirent) int64 { return entrySize + int64(len(e.name)) }

// readWindow reads a directory for those entries behind a cookie that have room in so
// many octets. It takes twice as many meanwhile.
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
	w.entries = slices.Clone(w.entries) // of no more than their number
	// Two names of one cookie do not happen by chance. If they do, one moves up.
	for i := 1; i < len(w.entries); i++ {
		if last := w.entries[i-1].cookie; w.entries[i].cookie <= last {
			w.entries[i].cookie = last + 1
		}
	}
	return w, nil
}

// cut sorts the entries and keeps the first ones, one at least.
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

// covers reports whether what is behind a cookie begins in the window.
func (w *window) covers(cookie uint64) bool {
	return cookie >= w.from && (w.last || cookie < w.upto)
}

// read calls f for the entries behind a cookie until f returns false. It reports
// whether the directory has ended.
func (w *window) read(cookie uint64, f func(*dirent) bool) (end bool) {
	at, _ := slices.BinarySearchFunc(w.entries, cookie, func(e dirent, c uint64) int {
		return cmp.Or(cmp.Compare(e.cookie, c), -1) // behind it
	})
	for i := at; i < len(w.entries); i++ {
		e := w.entries[i]
		if !f(&e) {
			return false
		}
	}
	return w.last
}
