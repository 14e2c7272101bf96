// This file caches permission checks for data. Asking the kernel as the caller takes longer
// than reading a page, and readers of a page usually read more.

package folder

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

// ctimeAge is how old the last change of a file's attributes has to be before an answer is
// cached: two changes within one tick of the clock have the same time.
const ctimeAge = time.Second

// rulings are the kernel's latest answers about a file.
type rulings struct {
	mu    sync.Mutex
	ctime nfs.Time // for which they hold: changes of mode, owner and ACL set it
	last  [4]ruling
	next  int // the element of last to replace next
}

// A ruling says whether a caller has some rights.
type ruling struct {
	creds  creds
	rights uint32 // 0: unused
	err    error
}

// ask returns the cached answer, or calls ask.
func (r *rulings) ask(c *creds, st *info, rights uint32, now time.Time, ask func() error) error {
	if now.Sub(st.Ctime.Time()) < ctimeAge {
		return ask()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctime != st.Ctime {
		r.ctime, r.last = st.Ctime, [len(r.last)]ruling{}
	}
	for i := range r.last {
		if l := &r.last[i]; l.rights == rights && l.creds.uid == c.uid && l.creds.gid == c.gid && slices.Equal(l.creds.gids, c.gids) {
			return l.err
		}
	}
	err := ask()
	if stat := statOf(err); stat == nfs.OK || stat == nfs.ErrAcces {
		r.last[r.next] = ruling{creds{uid: c.uid, gid: c.gid, gids: slices.Clone(c.gids)}, rights, err}
		r.next = (r.next + 1) % len(r.last)
	}
	return err
}
