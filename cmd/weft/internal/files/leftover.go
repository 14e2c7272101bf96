// This file knows the files in part of this user's copies: it removes them, and
// those that copies had to leave behind which did not end by themselves.

package files

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"sync"
	"time"
)

const (
	// discardTime bounds the removal of a file in part, and hurriedTime after an
	// interrupt.
	discardTime = 5 * time.Second
	hurriedTime = 500 * time.Millisecond
)

// partName is what files in part are called.
var partName = regexp.MustCompile(`^\.weft-[0-9a-f]{12}\.part$`)

// beside is a new name beside a place, which says whose it is.
func beside(p Place) (Place, error) {
	var r [6]byte
	rand.Read(r[:])
	return Place{p.Tree, p.Tree.Dir(p.Path)}.in(".weft-" + hex.EncodeToString(r[:]) + ".part")
}

// discard removes a file in part. If there is none, so much the better.
func discard(ctx context.Context, part Place) error {
	limit := discardTime
	if ctx.Err() != nil {
		limit = hurriedTime
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := part.Tree.Remove(ctx, part.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%v may be left behind: %w", part, err)
	}
	return nil
}

// begin is a new name beside a place, of which account is kept.
func (c *Copier) begin(p Place) (Place, error) {
	part, err := beside(p)
	if err == nil {
		c.Leftovers.begin(part)
	}
	return part, err
}

// unmade is what becomes of a file in part that could not be made. One that was
// refused is not there.
func (c *Copier) unmade(ctx context.Context, part Place, err error) error {
	left := c.discard(ctx, part)
	if fatal(err) {
		return left
	}
	c.Leftovers.end(part)
	return nil
}

// finish gives a file that is whole its name.
func (c *Copier) finish(ctx context.Context, part, to Place) error {
	err := part.Tree.Rename(ctx, part.Path, to.Path)
	if err == nil {
		c.Leftovers.end(part)
	}
	return err
}

// discard removes a file in part. One that it cannot remove is left to the account,
// or is an error without one.
func (c *Copier) discard(ctx context.Context, part Place) error {
	err := discard(ctx, part)
	switch {
	case err == nil:
		c.Leftovers.end(part)
	case c.Leftovers != nil:
		return nil
	}
	return err
}

// A Leftovers keeps account of files in part, in a folder of this user's: an entry is
// there before its file is, and goes after it. What is of processes that have ended
// without removing their files is the next one's to remove. A nil *Leftovers keeps
// account of nothing. Methods may be called by any goroutine.
type Leftovers struct {
	dir string

	mu    sync.Mutex
	own   *account
	parts []Place // that there may be
}

// OpenLeftovers keeps account in dir, which it makes if it has to. If that is not a
// folder of this user's alone the account is in memory, and Kept is false.
func OpenLeftovers(dir string) *Leftovers {
	if private(dir) != nil {
		dir = ""
	}
	return &Leftovers{dir: dir}
}

// Kept reports whether there is account of what is left, for the next to remove.
func (l *Leftovers) Kept() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own != nil
}

// begin notes that part is going to be made. Without room for the note the copy goes
// on: what would be left is told all the same.
func (l *Leftovers) begin(part Place) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts = append(l.parts, part)
	if l.own == nil && l.dir != "" {
		if l.own, _ = newAccount(l.dir); l.own == nil {
			l.dir = "" // nor will the next
		}
	}
	l.own.add(entryOf(part))
}

// end notes that part is gone.
func (l *Leftovers) end(part Place) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, p := range l.parts {
		if p == part {
			l.parts = append(l.parts[:i], l.parts[i+1:]...)
			break
		}
	}
	left := make([]entry, len(l.parts))
	for i, p := range l.parts {
		left[i] = entryOf(p)
	}
	l.own.replace(left)
}

// Left is the files in part that there may be. At the end of a copy they are left
// behind.
func (l *Leftovers) Left() []Place {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Place(nil), l.parts...)
}

// Close ends the account. What is left is for the next to remove.
func (l *Leftovers) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own.close(len(l.parts) == 0)
}

// Sweep removes from trees, and from this machine, what ended processes have left,
// and returns what it has removed. What cannot be removed stays for the next.
func (l *Leftovers) Sweep(ctx context.Context, trees ...Tree) (removed []Place) {
	if l == nil || l.dir == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, discardTime)
	defer cancel()
	trees = append(trees, Local{})
	for _, a := range abandoned(l.dir) {
		var left []entry
		for _, e := range a.read() {
			gone, there := e.remove(ctx, trees)
			if !gone {
				left = append(left, e)
			} else if there != nil {
				removed = append(removed, *there)
			}
		}
		a.replace(left)
		a.close(len(left) == 0)
	}
	return removed
}

// An entry of an account is a file in part: a path in a tree. Names are bytes, which
// need not be UTF-8.
type entry struct {
	Server []byte `json:"server,omitempty"` // by its URL; none is this machine
	Export []byte `json:"export,omitempty"`
	Path   []byte `json:"path"`
}

// entryOf is what is kept of a place.
func entryOf(p Place) entry {
	if r, ok := p.Tree.(*Remote); ok {
		return entry{Server: []byte(r.Name), Export: []byte(r.FS.Export()), Path: []byte(p.Path)}
	}
	path, err := filepath.Abs(p.Path)
	if err != nil {
		path = p.Path
	}
	return entry{Path: []byte(path)}
}

// in reports whether the entry is of a file of the tree.
func (e entry) in(t Tree) bool {
	if r, ok := t.(*Remote); ok {
		return string(e.Server) == r.Name && string(e.Export) == r.FS.Export()
	}
	_, local := t.(Local)
	return local && len(e.Server) == 0
}

// remove removes the file, if it is of one of the trees. It reports whether there is
// none any more, and where there was one.
func (e entry) remove(ctx context.Context, trees []Tree) (gone bool, there *Place) {
	for _, t := range trees {
		if !e.in(t) {
			continue
		}
		p := Place{t, string(e.Path)}
		info, err := t.Lstat(ctx, p.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist), err == nil && (info.Mode.IsDir() || !partName.MatchString(t.Base(p.Path))):
			return true, nil // or none of ours
		case err != nil, discard(ctx, p) != nil:
			return false, nil
		}
		return true, &p
	}
	return false, nil
}
