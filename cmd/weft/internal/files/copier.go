// This file does what a copy has planned.

package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

// A Copier copies files and folders. A file is written under another name beside
// the one it gets in the end, so that nothing that is in part looks whole.
type Copier struct {
	Recursive bool        // folders, too, and symbolic links as such
	Exact     bool        // the destination is the copy's name, even if it is a folder
	Preserve  bool        // permissions, times, and owners where that may be
	HardLinks bool        // files of several names stay such
	Special   bool        // pipes, sockets and devices are made anew, with Recursive
	Verify    bool        // read both ends again and compare checksums
	Resume    bool        // skip what is there with the same size and time, and keep times for that
	Checksum  bool        // with Resume: skip what is there with the same content
	Umask     fs.FileMode // permissions that new files do not have without Preserve

	Progress func(bytes int64)           // of data copied or compared; may be nil
	Begun    func(from fmt.Stringer)     // a file is being copied; may be nil
	Copied   func(from, to fmt.Stringer) // a file is there; may be nil
	Failed   func(err error)             // something was not copied, and others are; may be nil
	Lost     func(err error)             // a file was copied without something that was to be kept; may be nil

	failures, losses, skipped int
	files                     int   // copied, with data
	bytes                     int64 // of those

	links links
	made  []bool // of the folders that the steps are in: they were not there

	Leftovers *Leftovers // keeps account of files in part; may be nil
}

// Failures is how many files were not copied.
func (c *Copier) Failures() int { return c.failures }

// Losses is how many things of files that were copied were not kept.
func (c *Copier) Losses() int { return c.losses }

// Skipped is how many files were left as they are, as they are the same.
func (c *Copier) Skipped() int { return c.skipped }

// Done is how many files with data were copied, and the bytes of those.
func (c *Copier) Done() (files int, bytes int64) { return c.files, c.bytes }

// Work is how many bytes the progress of a plan adds up to.
func (c *Copier) Work(p *Plan) int64 { return c.share(p.Bytes) }

// share is what so many bytes of a file are in the progress.
func (c *Copier) share(bytes int64) int64 {
	if c.Verify {
		return 3 * min(bytes, math.MaxInt64/3)
	}
	return bytes
}

func (c *Copier) fail(err error) {
	c.failures++
	if c.Failed != nil {
		c.Failed(err)
	}
}

func (c *Copier) lose(err error) {
	c.losses++
	if c.Lost != nil {
		c.Lost(err)
	}
}

func (c *Copier) count(bytes int64) {
	if c.Progress != nil {
		c.Progress(bytes)
	}
}

// Fatal reports whether an error is that of a whole server rather than of a file: the
// next file would have it, too.
func Fatal(err error) bool { return fatal(err) }

// fatal reports whether an error is that of a whole server rather than of a file.
func fatal(err error) bool {
	var e *client.Error
	if !errors.As(err, &e) {
		return false
	}
	var stat nfs.Stat
	if errors.As(err, &stat) {
		return false
	}
	for _, own := range []error{client.ErrOutside, client.ErrLoop, client.ErrServer, client.ErrLost} {
		if errors.Is(err, own) {
			return false
		}
	}
	return true
}

// Run does what was planned. Its error is one that ended the whole copy; files
// that were not copied are told to c.Failed, and counted.
func (c *Copier) Run(ctx context.Context, p *Plan) error {
	var missing *Place // a folder that could not be made, and what is in it
	for _, s := range p.steps {
		if again := s.do == makeDir && missing != nil && s.to == *missing; !again && missing != nil && s.to.Tree.Inside(s.to.Path, missing.Path) {
			continue
		}
		missing = nil
		err := c.step(ctx, &s)
		if err == nil {
			continue
		}
		if ctx.Err() != nil || fatal(err) {
			return err
		}
		c.fail(err)
		if s.do == makeDir {
			missing = &s.to
		}
	}
	return nil
}

func (c *Copier) step(ctx context.Context, s *step) error {
	switch s.do {
	case makeDir:
		return c.makeDir(ctx, s)
	case finishDir:
		last := len(c.made) - 1
		made := c.made[last]
		c.made = c.made[:last]
		return c.finishDir(ctx, s, made)
	}
	if c.Begun != nil {
		c.Begun(s.from)
	}
	switch s.do {
	case copyLink:
		return c.link(ctx, s)
	case makeNode:
		return c.node(ctx, s)
	}
	if done, err := c.linkAgain(ctx, s); done || err != nil {
		return err
	}
	return c.file(ctx, s)
}

// makeDir makes a folder. Until it is finished its user can write to it, and nobody
// else if it gets another owner or the sticky bit.
func (c *Copier) makeDir(ctx context.Context, s *step) error {
	_, old, err := s.there(ctx)
	switch {
	case err == nil && old.Mode.IsDir():
		c.made = append(c.made, false)
		return nil
	case err == nil:
		return fmt.Errorf("%v is not a directory, and %v is one", s.to, s.from)
	}
	perm := c.newPerm(s.info) | 0o700
	if c.Preserve || s.info.Mode&fs.ModeSticky != 0 {
		perm = 0o700
	}
	if err := s.to.Tree.Mkdir(ctx, s.to.Path, perm); err != nil {
		return s.failed(err)
	}
	c.made = append(c.made, true)
	return nil
}

// finishDir sets what of a folder had to wait for the files in it.
func (c *Copier) finishDir(ctx context.Context, s *step, made bool) error {
	if c.Preserve {
		return c.set(ctx, s, s.to, s.info.meta())
	}
	perm := c.newPerm(s.info) | s.info.Mode&fs.ModeSticky
	if !made || perm&fs.ModeSticky == 0 && perm&0o700 == 0o700 {
		return nil
	}
	info, err := s.to.Tree.Lstat(ctx, s.to.Path)
	if err != nil {
		return s.failed(err)
	}
	return c.set(ctx, s, s.to, Meta{Perm: info.Mode&(permBits&^fs.ModePerm) | perm, Owner: info.meta().Owner})
}

// newPerm is the permissions of a new file.
func (c *Copier) newPerm(info *Info) fs.FileMode { return info.Mode.Perm() &^ c.Umask }

// set sets what is to be kept of what s copies.
func (c *Copier) set(ctx context.Context, s *step, at Place, meta Meta) error {
	err := at.Tree.Set(ctx, at.Path, meta)
	var owner *OwnerError
	var when *TimeError
	noOwner, noTime := errors.As(err, &owner), errors.As(err, &when)
	if noOwner {
		c.lose(fmt.Errorf("%v: %w", s.to, owner))
	}
	if noTime {
		c.lose(fmt.Errorf("%v: %w", s.to, when))
	}
	if noOwner || noTime {
		return nil
	}
	return s.failed(err)
}

// failed says of an error what was being copied: systems and servers name the part,
// which the user did not.
func (s *step) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%v to %v: %w", s.from, s.to, err)
}

// there is what is where s copies to, and its path without those symbolic links
// that a folder may be reached by.
func (s *step) there(ctx context.Context) (string, *Info, error) {
	if s.named {
		return s.to.Tree.Resolve(ctx, s.to.Path)
	}
	info, err := s.to.Tree.Lstat(ctx, s.to.Path)
	return s.to.Path, info, err
}

// target is where the data of a file go, and what is there; nothing is no error.
// They go through symbolic links, but of those that the user has not named only
// through those that lead to what is copied to anyway.
func (s *step) target(ctx context.Context) (Place, *Info, error) {
	path, old, err := s.there(ctx)
	linked := err == nil && old.Mode&fs.ModeSymlink != 0
	if linked {
		path, old, err = s.to.Tree.Resolve(ctx, s.to.Path)
		if err == nil && !s.to.Tree.Inside(path, s.root.Path) {
			return s.to, nil, fmt.Errorf("%v is a symbolic link that leads out of %v: not written through; remove it, or copy to what it leads to", s.to, s.root)
		}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Place{s.to.Tree, path}, old, err
	}
	if s.named { // a link was not seen yet
		_, err := s.to.Tree.Lstat(ctx, s.to.Path)
		linked = err == nil
	}
	if linked {
		return s.to, nil, fmt.Errorf("%v is a symbolic link that leads to nothing: not written through; remove it, or copy to what it leads to", s.to)
	}
	return s.to, nil, nil
}

// link makes a symbolic link, in place of what there was unless that is a folder.
func (c *Copier) link(ctx context.Context, s *step) error {
	target, err := s.from.Tree.Readlink(ctx, s.from.Path)
	if err != nil {
		return err
	}
	if c.Resume {
		old, err := s.to.Tree.Lstat(ctx, s.to.Path)
		if err == nil && old.Mode&fs.ModeSymlink != 0 {
			if has, err := s.to.Tree.Readlink(ctx, s.to.Path); err == nil && has == target {
				return c.skip(ctx, s, s.to, old)
			}
		}
	}
	return c.replace(ctx, s, func(part Place) error {
		return part.Tree.Symlink(ctx, target, part.Path)
	})
}

// node makes a pipe, a socket or a device, in place of what there was unless that is
// a folder.
func (c *Copier) node(ctx context.Context, s *step) error {
	if c.Resume {
		old, err := s.to.Tree.Lstat(ctx, s.to.Path)
		if err == nil && old.Mode.Type() == s.info.Mode.Type() && old.Device == s.info.Device {
			return c.skip(ctx, s, s.to, old)
		}
	}
	mode := s.info.Mode.Type() | c.newPerm(s.info)
	if c.Preserve {
		mode = s.info.Mode.Type() | 0o600
	}
	return c.replace(ctx, s, func(part Place) error {
		return part.Tree.Mknod(ctx, part.Path, mode, s.info.Device)
	})
}

// replace has something without data made under another name, and gives it that of
// what there was.
func (c *Copier) replace(ctx context.Context, s *step, make func(part Place) error) error {
	if err := refuseDir(ctx, s.to, s.from); err != nil {
		return err
	}
	part, err := c.begin(s.to)
	if err != nil {
		return err
	}
	if err := make(part); err != nil {
		return errors.Join(s.failed(err), c.unmade(ctx, part, err))
	}
	if c.Preserve {
		err = c.set(ctx, s, part, s.info.meta())
	}
	if err == nil {
		err = s.failed(c.finish(ctx, part, s.to))
	}
	if err != nil {
		return errors.Join(err, c.discard(ctx, part))
	}
	c.copied(s)
	return nil
}

// refuseDir fails if there is a folder where a file is to be.
func refuseDir(ctx context.Context, to, from Place) error {
	if old, err := to.Tree.Lstat(ctx, to.Path); err == nil && old.Mode.IsDir() {
		return fmt.Errorf("%v is a directory, and %v is not", to, from)
	}
	return nil
}

// file copies a regular file.
func (c *Copier) file(ctx context.Context, s *step) error {
	to, old, err := s.target(ctx)
	switch {
	case err != nil:
		return err
	case old == nil: // a new one
	case old.Mode.IsDir():
		return fmt.Errorf("%v is a directory, and %v is not", s.to, s.from)
	case !old.Mode.IsRegular():
		return c.into(ctx, s, to)
	default:
		if same, err := c.same(ctx, s.from, to); err != nil || same {
			return errors.Join(err, sameFile(same, s.from, s.to))
		}
		switch same, err := c.unchanged(ctx, s, to, old); {
		case err != nil:
			return err
		case same:
			return c.skip(ctx, s, to, old)
		}
	}
	perm, meta, set := c.keeps(s.info, old)
	part, err := c.begin(to)
	if err != nil {
		return err
	}
	out, err := part.Tree.Create(ctx, part.Path, perm)
	if err != nil {
		return errors.Join(s.failed(err), c.unmade(ctx, part, err))
	}
	if err := c.transfer(ctx, s.from, s.info.sparse(), out); err != nil {
		return errors.Join(s.failed(err), c.discard(ctx, part))
	}
	if err := c.compare(ctx, s.from, part); err != nil {
		return errors.Join(err, c.discard(ctx, part))
	}
	if set {
		err = c.set(ctx, s, part, meta)
	}
	if err == nil {
		err = s.failed(c.finish(ctx, part, to))
	}
	if err != nil {
		return errors.Join(err, c.discard(ctx, part))
	}
	c.remember(ctx, s, to)
	c.copied(s)
	return nil
}

// keeps is the permissions that a file is made with, and what is set when its data
// are there. One that takes the place of another stays as open as that was, and its
// owner's, but does not lend its owner's rights to other data.
func (c *Copier) keeps(from, old *Info) (perm fs.FileMode, meta Meta, set bool) {
	perm = c.newPerm(from)
	switch {
	case c.Preserve:
		meta, set = from.meta(), true
	case old != nil:
		meta = Meta{Perm: disowned(old.Mode & permBits), Owner: old.meta().Owner}
		set = true
	case c.Resume:
		meta, set = Meta{Perm: perm}, true
	}
	if c.Resume {
		meta.Atime, meta.Mtime = from.Atime, from.Mtime
	}
	if set {
		perm = 0o600 // nobody else's until it is
	}
	return perm, meta, set
}

func (c *Copier) copied(s *step) {
	if s.info.Mode.IsRegular() {
		c.files++
		c.bytes += s.info.Size
	}
	if c.Copied != nil {
		c.Copied(s.from, s.to)
	}
}

// same reports whether a source is the file at a place.
func (c *Copier) same(ctx context.Context, from, to Place) (bool, error) {
	if from.Tree != to.Tree {
		return false, nil
	}
	own, _, err := from.Tree.Resolve(ctx, from.Path)
	if err != nil {
		return false, err
	}
	other, _, err := to.Tree.Resolve(ctx, to.Path)
	return own == other, err
}

func sameFile(same bool, from, to Place) error {
	if !same {
		return nil
	}
	return fmt.Errorf("%v and %v are the same file", from, to)
}

// compare reads a file and its copy again, if asked to.
func (c *Copier) compare(ctx context.Context, from, part Place) error {
	if !c.Verify {
		return nil
	}
	want, err := c.sum(ctx, from)
	if err != nil {
		return fmt.Errorf("reading %v again: %w", from, err)
	}
	got, err := c.sum(ctx, part)
	if err != nil {
		return fmt.Errorf("reading the copy of %v again: %w", from, err)
	}
	if got != want {
		return fmt.Errorf("%v was copied incorrectly, or has changed: its SHA-256 is %x, that of the copy was %x", from, want, got)
	}
	return nil
}
