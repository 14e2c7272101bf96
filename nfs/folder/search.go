// This file searches for objects whose handles are authentic, but whose places the server
// does not know.
//
//  1. find enters a quest for the object of a key, or joins an existing one, and starts run
//     if it is not running. It waits for the quest's end, or for patience.
//  2. run takes all quests and walks through the whole export. Whenever the walk finds the
//     object of a quest, it gives the tree the places on the path to it.
//  3. answer ends each of these quests. Objects that were not found count as lost for a
//     while. Quests entered during a walk are for the next one.
//
// Locking: searcher.mu guards the fields below it. It is not held during a walk. A quest's
// found and again are written before its end is closed. tree.mu is never held together with
// searcher.mu.

package folder

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/origin"
)

const (
	// patience is how long a call waits for a search before its client is asked to retry.
	patience = 2 * time.Second

	// lostFor is how long an object that was not found is not searched for again.
	lostFor = 30 * time.Second

	maxWanted   = 1024 // objects searched for at a time
	maxPerShare = 256  // of these, for one share
	maxLost     = 8192 // objects remembered as lost
	maxClimb    = 512  // depth of a walk in directories, each of which it keeps open
)

// A searcher searches for objects. Its goroutine runs while there are quests.
type searcher struct {
	tree   *tree
	wait   time.Duration // patience
	ctx    context.Context
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	running bool
	wanted  map[key]*quest
	asked   map[origin.Share]int // of wanted
	lost    map[key]time.Time
}

// A quest is a search for one object.
type quest struct {
	share origin.Share  // of the first call that needed the object
	end   chan struct{} // closed at the end of the search
	found bool          // the tree knows the object's place
	again bool          // not found, but the walk could not look everywhere
}

func (s *searcher) start(t *tree) {
	s.tree, s.wait = t, patience
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wanted, s.asked, s.lost = make(map[key]*quest), make(map[origin.Share]int), make(map[key]time.Time)
}

func (s *searcher) stop() {
	s.mu.Lock()
	s.cancel() // after this no search begins
	s.mu.Unlock()
	s.done.Wait()
}

// find returns nil once the tree knows a place of k, NFS3ERR_STALE if there is none, and
// NFS3ERR_JUKEBOX while the search lasts, or if it could not look everywhere.
func (s *searcher) find(k key, share origin.Share) error {
	q, err := s.begin(k, share)
	if err != nil {
		return err
	}
	timer := time.NewTimer(s.wait)
	defer timer.Stop()
	select {
	case <-q.end:
		if q.found {
			return nil
		}
		if s.ctx.Err() == nil && !q.again {
			return nfs.ErrStale
		}
	case <-s.ctx.Done():
	case <-timer.C:
	}
	return nfs.ErrJukebox
}

func (s *searcher) begin(k key, share origin.Share) (*quest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.lost[k]; ok {
		if time.Since(at) < lostFor {
			return nil, nfs.ErrStale
		}
		delete(s.lost, k)
	}
	q := s.wanted[k]
	switch {
	case s.ctx.Err() != nil:
		return nil, nfs.ErrJukebox
	case q == nil && (len(s.wanted) == maxWanted || s.asked[share] == maxPerShare):
		return nil, nfs.ErrJukebox
	case q == nil:
		q = &quest{share: share, end: make(chan struct{})}
		s.wanted[k] = q
		s.asked[share]++
	}
	if !s.running {
		s.running = true
		s.done.Go(s.run)
	}
	return q, nil
}

// gone records that k does not exist any more.
func (s *searcher) gone(k key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lose(k)
}

func (s *searcher) lose(k key) {
	if len(s.lost) >= maxLost {
		clear(s.lost)
	}
	s.lost[k] = time.Now()
}

// run searches until there are no quests.
func (s *searcher) run() {
	for {
		s.mu.Lock()
		if len(s.wanted) == 0 || s.ctx.Err() != nil {
			s.running = false
			s.mu.Unlock()
			return
		}
		w := &walk{s: s, quests: make(map[key]*quest, len(s.wanted)), inos: make(map[uint64]bool)}
		for k, q := range s.wanted {
			w.quests[k] = q
			w.inos[k.ino] = true
		}
		s.mu.Unlock()

		keys := make([]key, 0, len(w.quests))
		for k := range w.quests {
			keys = append(keys, k)
		}
		err := w.visit(s.tree.vol.root(), s.tree.root.key)
		if err == errFound {
			err = nil
		}
		s.mu.Lock()
		for _, k := range keys {
			s.answer(k, err == nil, w.unsure)
		}
		s.mu.Unlock()
	}
}

// answer ends the quest for k after a walk: whether that was complete, and whether it had to
// leave something out.
func (s *searcher) answer(k key, whole, unsure bool) {
	q := s.wanted[k]
	q.again = unsure
	if !q.found && whole && !unsure {
		s.lose(k)
	}
	delete(s.wanted, k)
	if s.asked[q.share]--; s.asked[q.share] == 0 {
		delete(s.asked, q.share)
	}
	close(q.end)
}

// A walk is one pass through the export.
type walk struct {
	s      *searcher
	quests map[key]*quest // not found yet
	inos   map[uint64]bool
	way    []step // path to the present object
	unsure bool   // a temporary error has kept it from looking at something
}

// A step is a directory on the path, with its place.
type step struct {
	key key
	at  place
}

// errFound ends a walk that has found all objects.
var errFound = errors.New("folder: all found")

// visit searches a directory and those below it. A directory that cannot be read, or does not
// exist any more, counts as empty.
func (w *walk) visit(dir object, k key) error {
	if err := w.s.ctx.Err(); err != nil {
		return err
	}
	names, err := w.names(dir)
	if exhausted(err) {
		w.s.tree.relieve()
		names, err = w.names(dir)
	}
	if err != nil {
		w.unsure = w.unsure || temporary(err)
		return nil
	}
	for _, name := range names {
		if err := w.look(dir, k, name); err != nil {
			return err
		}
	}
	return nil
}

// names returns the entries to look up: directories, and those with a wanted inode number.
func (w *walk) names(dir object) ([]string, error) {
	vol := w.s.tree.vol
	r, err := vol.readDir(dir)
	if err != nil {
		return nil, err
	}
	defer r.close()
	all := !vol.trueInodes()
	var names []string
	_, err = r.read(0, func(e *dirent) bool {
		if e.name != "." && e.name != ".." && (all || e.dir || w.inos[e.ino]) {
			names = append(names, e.name)
		}
		return true
	})
	return names, err
}

func (w *walk) look(dir object, k key, name string) error {
	o, st, err := w.s.tree.vol.lookup(serverCreds, dir, name)
	if exhausted(err) {
		w.s.tree.relieve()
		o, st, err = w.s.tree.vol.lookup(serverCreds, dir, name)
	}
	if err != nil {
		w.unsure = w.unsure || temporary(err)
		return nil
	}
	defer o.close()
	w.way = append(w.way, step{st.key, place{k, name}})
	defer func() { w.way = w.way[:len(w.way)-1] }()
	if q := w.quests[st.key]; q != nil {
		for _, p := range w.way {
			w.s.tree.remember(p.key, p.at)
		}
		q.found = true
		if delete(w.quests, st.key); len(w.quests) == 0 {
			return errFound
		}
	}
	if st.Type == nfs.TypeDir && len(w.way) < maxClimb {
		return w.visit(o, st.key)
	}
	return nil
}
