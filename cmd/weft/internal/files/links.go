// This file keeps hard links: the first name of a file gets its data, and the others
// become links to it.

package files

import (
	"context"
	"errors"
	"fmt"
)

// links are the copied files whose sources have more names.
type links struct {
	files map[linkKey]*linked
	bytes int
	full  bool
}

// A linkKey identifies a source.
type linkKey struct {
	tree Tree
	id   ID
}

// A linked file is a copy that may get more names.
type linked struct {
	at   Place
	id   ID
	left uint32 // names that the source has besides
}

const (
	// maxLinks bounds the memory for files with several names, in bytes: a server may
	// claim that all have.
	maxLinks = 64 << 20
	// linkSize is the size of a linked file without its path.
	linkSize = 192
)

func (l *linked) bytes() int { return linkSize + len(l.at.Path) }

func (l *links) forget(key linkKey) {
	if old := l.files[key]; old != nil {
		l.bytes -= old.bytes()
		delete(l.files, key)
	}
}

// linkAgain makes a link if the file was copied under another name. If the tree refuses
// the link, the data is copied again.
func (c *Copier) linkAgain(ctx context.Context, s *step) (done bool, err error) {
	key := linkKey{s.from.Tree, s.info.ID}
	first := c.links.files[key]
	if first == nil || s.info.Links < 2 {
		return false, nil
	}
	copied, err := first.at.Tree.Lstat(ctx, first.at.Path)
	if err != nil && fatal(err) {
		return false, err
	}
	if err != nil || copied.ID != first.id || !copied.Mode.IsRegular() { // another took its place
		c.links.forget(key)
		return false, nil
	}
	if first.left--; first.left == 0 {
		c.links.forget(key)
	}
	if old, err := s.to.Tree.Lstat(ctx, s.to.Path); err == nil && old.is(copied) {
		c.skipped++ // and a Rename over it would do nothing
	} else if done, err := c.linkTo(ctx, s, first.at); !done || err != nil {
		return false, err
	} else {
		c.copied(s)
	}
	c.count(c.share(s.info.Size))
	return true, nil
}

func (c *Copier) linkTo(ctx context.Context, s *step, first Place) (done bool, err error) {
	if err := refuseDir(ctx, s.to, s.from); err != nil {
		return false, err
	}
	part, err := c.newPart(s.to)
	if err != nil {
		return false, err
	}
	if err := part.Tree.Link(ctx, first.Path, part.Path); err != nil {
		left := c.notMade(ctx, part, err)
		if ctx.Err() != nil || fatal(err) {
			return false, errors.Join(s.failed(err), left)
		}
		c.lose(fmt.Errorf("%v became a copy, not a hard link to %v: %w", s.to, first, err))
		return false, nil
	}
	if err := c.finish(ctx, part, s.to); err != nil {
		return false, errors.Join(s.failed(err), c.discard(ctx, part))
	}
	return true, nil
}

// remember records where a file is whose other names follow.
func (c *Copier) remember(ctx context.Context, s *step, at Place) {
	if !c.HardLinks || s.info.Links < 2 || c.links.full {
		return
	}
	info, err := at.Tree.Lstat(ctx, at.Path)
	if err != nil || info.Links == 0 {
		return
	}
	key := linkKey{s.from.Tree, s.info.ID}
	c.links.forget(key)
	file := &linked{at, info.ID, s.info.Links - 1}
	if c.links.bytes+file.bytes() > maxLinks {
		c.links.full = true
		c.lose(fmt.Errorf("%v and later files may become copies instead of hard links: the names of such files exceed %d MiB; copy them in parts", s.from, maxLinks>>20))
		return
	}
	if c.links.files == nil {
		c.links.files = make(map[linkKey]*linked)
	}
	c.links.files[key] = file
	c.links.bytes += file.bytes()
}
