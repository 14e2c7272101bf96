// This file caches windows of directories, so that a directory is not read and sorted for
// each call. The memory for them is bounded and divided by [origin.Share].
//
// Locking: listings.mu guards the fields below it, and of windows the fields from share on.
// It is not held while a directory is read. load waits for the share's turn (gate), and then
// locks node.listing, so that calls for one directory read it once.

package folder

import (
	"container/list"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

const (
	// maxWindow bounds the octets of one window: some 240,000 names of 40 octets.
	// maxListings bounds the octets of all windows.
	maxWindow   = 24 << 20
	maxListings = 128 << 20

	// maxReading bounds the directories that are read at a time, one for each share.
	maxReading = 4

	// sameFor is for how long a new listing may use an existing window, if the directory
	// has not changed since it was read. To be sure of that, the directory must have been
	// unchanged for tickMax when it was read: two changes within one tick of the file
	// system's clock, at most two seconds, have the same time.
	sameFor = 5 * time.Second
	tickMax = 2 * time.Second
)

// listings holds the windows of all directories. Many goroutines may use it.
type listings struct {
	window, max int64 // octets of one, and of all
	gate        gate

	mu     sync.Mutex
	size   int64 // octets
	dirs   map[key][]*window
	shares map[origin.Share]*lister
}

// A lister is a share with its windows.
type lister struct {
	size  int64
	order list.List // of windows, the latest used first
}

func (l *listings) start() {
	l.window, l.max = maxWindow, maxListings
	l.dirs, l.shares = make(map[key][]*window), make(map[origin.Share]*lister)
	l.gate.start(maxReading)
}

// find returns the window that has the entries after a cookie, or nil. A new listing must
// contain all entries made before began, so it uses windows that were read after that, or
// windows of an unchanged directory.
func (l *listings) find(dir key, st *info, cookie uint64, began time.Time) *window {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	old := func(w *window) bool { return w.loaded.Before(began) && !w.same(st, now) }
	if cookie == 0 && slices.ContainsFunc(l.dirs[dir], old) {
		return nil
	}
	for _, w := range l.dirs[dir] {
		if w.covers(cookie) {
			w.used = now
			l.shares[w.share].order.MoveToFront(w.element)
			return w
		}
	}
	return nil
}

// same reports whether the directory has not changed since the window was read.
func (w *window) same(st *info, now time.Time) bool {
	return w.mtime == st.Mtime && w.ctime == st.Ctime && now.Sub(w.loaded) < sameFor &&
		w.loaded.Sub(w.ctime.Time()) > tickMax && w.loaded.Sub(w.mtime.Time()) > tickMax
}

// put adds a window. If there is no more room, the share with the most octets loses the
// windows that it has not used for longest. A window from the start of a directory replaces
// all windows of the directory.
func (l *listings) put(w *window) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.from == 0 {
		for _, old := range slices.Clone(l.dirs[w.dir]) {
			l.drop(old)
		}
	}
	h := l.shares[w.share]
	if h == nil {
		h = new(lister)
		l.shares[w.share] = h
	}
	w.used = w.loaded
	w.element = h.order.PushFront(w)
	h.size += w.size
	l.size += w.size
	l.dirs[w.dir] = append(l.dirs[w.dir], w)
	for l.size > l.max {
		for _, other := range l.shares {
			if other.size > h.size {
				h = other
			}
		}
		l.drop(h.order.Back().Value.(*window))
	}
}

// drop removes a window. Calls that read it may go on. l.mu is held.
func (l *listings) drop(w *window) {
	h := l.shares[w.share]
	h.order.Remove(w.element)
	h.size -= w.size
	l.size -= w.size
	if h.order.Len() == 0 {
		delete(l.shares, w.share)
	}
	l.dirs[w.dir] = slices.DeleteFunc(l.dirs[w.dir], func(other *window) bool { return other == w })
	if len(l.dirs[w.dir]) == 0 {
		delete(l.dirs, w.dir)
	}
}

// sweep removes windows that have not been used for a while.
func (l *listings) sweep(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.shares {
		for e := h.order.Back(); e != nil; {
			w := e.Value.(*window)
			if e = e.Prev(); now.Sub(w.used) < idle {
				break
			}
			l.drop(w)
		}
	}
}

// list calls f for the entries of n after a cookie, until f returns false, and reports whether
// it has come to the end of the directory. St is the attributes of n.
func (t *tree) list(q *call, n *node, st *info, cookie uint64, f func(*dirent) bool) (end bool, err error) {
	if t.vol.stableCookies() {
		err = t.opendir(n, func(d dirReader) error {
			end, err = d.read(cookie, f)
			return err
		})
		return end, err
	}
	now := time.Now()
	w := t.listings.find(n.key, st, cookie, now)
	if w == nil {
		if w, err = t.load(q, n, st, cookie, now); err != nil {
			return false, err
		}
	}
	return w.read(cookie, f), nil
}

// load reads the window of n after a cookie, unless another call has done so since this one
// began.
func (t *tree) load(q *call, n *node, st *info, cookie uint64, began time.Time) (*window, error) {
	leave, err := t.listings.gate.enter(q.ctx, q.share)
	if err != nil {
		return nil, err
	}
	defer leave()
	n.listing.Lock()
	defer n.listing.Unlock()
	if w := t.listings.find(n.key, st, cookie, began); w != nil {
		return w, nil
	}
	loaded := time.Now()
	r, err := t.vol.readDir(t.object(n))
	if err != nil {
		return nil, err
	}
	defer r.close()
	w, err := readWindow(r, cookie, t.listings.window)
	if err != nil {
		return nil, err
	}
	w.dir, w.share, w.loaded, w.mtime, w.ctime = n.key, q.share, loaded, st.Mtime, st.Ctime
	t.listings.put(w)
	return w, nil
}

// A gate admits a number of calls at a time, and one of each share. The other calls of a share
// wait for that one, and so do not hold up other shares.
type gate struct {
	slots chan struct{}

	mu    sync.Mutex
	turns map[origin.Share]*turn
}

// A turn is the right of one share to pass.
type turn struct {
	free chan struct{} // has an element while no call has the turn
	want int           // calls that have it or wait for it
}

func (g *gate) start(slots int) {
	g.slots = make(chan struct{}, slots)
	g.turns = make(map[origin.Share]*turn)
}

// enter waits for admission, and returns the function to leave. If the call ends before that,
// the error is NFS3ERR_JUKEBOX.
func (g *gate) enter(ctx context.Context, share origin.Share) (leave func(), err error) {
	g.mu.Lock()
	t := g.turns[share]
	if t == nil {
		t = &turn{free: make(chan struct{}, 1)}
		t.free <- struct{}{}
		g.turns[share] = t
	}
	t.want++
	g.mu.Unlock()
	done := func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if t.want--; t.want == 0 {
			delete(g.turns, share)
		}
	}
	select {
	case <-t.free:
	case <-ctx.Done():
		done()
		return nil, nfs.ErrJukebox
	}
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		t.free <- struct{}{}
		done()
		return nil, nfs.ErrJukebox
	}
	return func() {
		<-g.slots
		t.free <- struct{}{}
		done()
	}, nil
}
