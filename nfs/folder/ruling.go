// This file remembers who may read or write a file. To ask the kernel as the caller
// takes longer than to read a page, and who reads one reads many.

package folder

import (
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

// settled is how old the last change of a file's attributes has to be for what is
// found out to hold until the next one: two changes within a tick of the clock are of
// one time.
const settled = time.Second

// rulings are the latest answers of the kernel about one file.
type rulings struct {
	mu    sync.Mutex
	ctime nfs.Time // that they are about: mode, owner and ACL change it
	last  [4]ruling
	next  int // of last to be overwritten
}

// A ruling says what a caller may.
type ruling struct {
	creds  creds
	rights uint32 // 0: none yet
	err    error
}

// ask answers by what is remembered, or asks.
func (r *rulings) ask(c *creds, st *info, rights uint32, now time.Time, ask func() error) error {
	if now.Sub(st.Ctime.Time()) < settled {
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
