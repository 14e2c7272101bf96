// This file keeps track of the partial files of this user's copies, and removes them,
// also those that interrupted or killed copies left behind.

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
	// discardTime limits the removal of a partial file, and hurriedTime after an
	// interrupt.
	discardTime = 5 * time.Second
	hurriedTime = 500 * time.Millisecond
)

// partName matches the names of partial files.
var partName = regexp.MustCompile(`^\.weft-[0-9a-f]{12}\.part$`)

// partBeside returns a new name for a partial file beside a place.
func partBeside(p Place) (Place, error) {
	var r [6]byte
	rand.Read(r[:])
	return Place{p.Tree, p.Tree.Dir(p.Path)}.in(".weft-" + hex.EncodeToString(r[:]) + ".part")
}

// discard removes a partial file, if it exists.
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

// newPart returns a new name for a partial file beside a place, and records it.
func (c *Copier) newPart(p Place) (Place, error) {
	part, err := partBeside(p)
	if err == nil {
		c.Leftovers.add(part)
	}
	return part, err
}

// notMade cleans up after a partial file could not be made. If the server refused it,
// there is none.
func (c *Copier) notMade(ctx context.Context, part Place, err error) error {
	left := c.discard(ctx, part)
	if fatal(err) {
		return left
	}
	c.Leftovers.remove(part)
	return nil
}

// finish gives a complete file its final name.
func (c *Copier) finish(ctx context.Context, part, to Place) error {
	err := part.Tree.Rename(ctx, part.Path, to.Path)
	if err == nil {
		c.Leftovers.remove(part)
	}
	return err
}

// discard removes a partial file. If that fails, the file stays recorded; without a
// record discard returns the error.
func (c *Copier) discard(ctx context.Context, part Place) error {
	err := discard(ctx, part)
	switch {
	case err == nil:
		c.Leftovers.remove(part)
	case c.Leftovers != nil:
		return nil
	}
	return err
}

// A Leftovers records partial files in a directory of this user. An entry is written
// before its file is made, and removed after it. The files of processes that ended
// without removing them are removed by the next process. A nil *Leftovers records
// nothing. Methods may be called by any goroutine.
type Leftovers struct {
	dir string

	mu    sync.Mutex
	own   *journal
	parts []Place // that there may be
}

// OpenLeftovers keeps records in dir, which it makes if necessary. If dir is not for
// this user alone, the records are in memory, and Kept returns false.
func OpenLeftovers(dir string) *Leftovers {
	if private(dir) != nil {
		dir = ""
	}
	return &Leftovers{dir: dir}
}

// Kept reports whether the next process will find the records.
func (l *Leftovers) Kept() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own != nil
}

// add records that part is about to be made. If the record cannot be written, the copy
// goes on; Left still returns the file.
func (l *Leftovers) add(part Place) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts = append(l.parts, part)
	if l.own == nil && l.dir != "" {
		if l.own, _ = newJournal(l.dir); l.own == nil {
			l.dir = "" // nor will the next
		}
	}
	l.own.add(entryOf(part))
}

// remove records that part is gone.
func (l *Leftovers) remove(part Place) {
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

// Left returns the partial files that may exist.
func (l *Leftovers) Left() []Place {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Place(nil), l.parts...)
}

// Close closes the journal. The next process removes the files in it.
func (l *Leftovers) Close() error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.own.close(len(l.parts) == 0)
}

// Sweep removes the partial files of ended processes from trees and from this machine,
// and returns those that it removed. It keeps the records of the others.
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

// An entry of a journal is a partial file: a path in a tree. Names are bytes, not
// necessarily UTF-8.
type entry struct {
	Server []byte `json:"server,omitempty"` // by its URL; none is this machine
	Export []byte `json:"export,omitempty"`
	Path   []byte `json:"path"`
}

// entryOf returns the entry for a place.
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

// in reports whether the file of the entry is in the tree.
func (e entry) in(t Tree) bool {
	if r, ok := t.(*Remote); ok {
		return string(e.Server) == r.Name && string(e.Export) == r.FS.Export()
	}
	_, local := t.(Local)
	return local && len(e.Server) == 0
}

// remove removes the file if it is in one of the trees. It reports whether the file is
// gone, and where it was.
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
