// This file keeps the windows that listings are answered from, so that a directory
// is not read and sorted anew for each call. Their memory is bounded and shared by
// those who list.

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
	// maxWindow is how many octets of a directory are read at a time: some 240,000
	// names of 40 octets. maxListings is how many octets are kept of all.
	maxWindow   = 24 << 20
	maxListings = 128 << 20

	// maxReading is how many directories are read at a time, one of each share.
	maxReading = 4

	// sameFor is for how long a listing may begin with what was read for another one,
	// if the directory has not changed. That is only believed if it had not changed for
	// a while when it was read: two changes within a tick of the file system's clock,
	// of two seconds at most, are of one time.
	sameFor = 5 * time.Second
	tickMax = 2 * time.Second
)

// listings are the windows of all directories. Many goroutines use them.
type listings struct {
	window, max int64 // octets of one, and of all
	gate        gate

	mu     sync.Mutex
	size   int64 // octets
	dirs   map[key][]*window
	shares map[origin.Share]*lister
}

// A lister is a share, with the windows that were read for it.
type lister struct {
	size  int64
	order list.List // of windows, the one used last in front
}

func (l *listings) start() {
	l.window, l.max = maxWindow, maxListings
	l.dirs, l.shares = make(map[key][]*window), make(map[origin.Share]*lister)
	l.gate.start(maxReading)
}

// find returns the window with what is behind a cookie, nil for none. A listing that
// began at a time has to have all that was made before, to its end: it takes what was
// read since, or the directory is as it was when it was read.
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

// same reports whether a directory is as it was when the window was read.
func (w *window) same(st *info, now time.Time) bool {
	return w.mtime == st.Mtime && w.ctime == st.Ctime && now.Sub(w.loaded) < sameFor &&
		w.loaded.Sub(w.ctime.Time()) > tickMax && w.loaded.Sub(w.mtime.Time()) > tickMax
}

// put keeps a window, and as many of the others as there is room for. Who has the
// most octets loses those not used for longest. One from the start takes the place of
// all of its directory.
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

// drop forgets a window, under the lock. Who reads it may go on.
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

// sweep forgets what was not used for a while.
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

// list calls f for the entries of n behind a cookie, until f returns false, and reports
// whether the directory has ended. St is what is known of n.
func (t *tree) list(q *call, n *node, st *info, cookie uint64, f func(*dirent) bool) (end bool, err error) {
	if t.vol.positions() {
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

// load reads the directory n for what is behind a cookie, when it is the share's turn,
// unless somebody else has done so since the call began.
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

// A gate lets in so many at a time, and one of each share: the others of a share wait
// for that one, not in front of all shares.
type gate struct {
	slots chan struct{}

	mu    sync.Mutex
	turns map[origin.Share]*turn
}

// A turn is that of one share.
type turn struct {
	free chan struct{} // has one element while it is nobody's
	want int           // who has it or waits for it
}

func (g *gate) start(slots int) {
	g.slots = make(chan struct{}, slots)
	g.turns = make(map[origin.Share]*turn)
}

// enter waits to be let in, and returns how to leave. A call that ends meanwhile
// may come again.
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
