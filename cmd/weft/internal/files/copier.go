// This file executes the plan of a copy.

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

// A Copier copies files and directories. It writes a file under a temporary name beside
// its final one, and renames it: a partial file never has its final name.
type Copier struct {
	Recursive bool        // directories, too, and symbolic links as links
	Exact     bool        // the destination is the name of the copy, even if it is a directory
	Preserve  bool        // permissions, times, and owners where that may be
	HardLinks bool        // keep hard links
	Special   bool        // with Recursive, copy pipes, sockets and devices
	Verify    bool        // read both ends again and compare checksums
	Resume    bool        // skip files with the same size and time, and keep times
	Checksum  bool        // with Resume, skip files with the same content
	Umask     fs.FileMode // permissions that new files do not have without Preserve

	Progress func(bytes int64)           // of data copied or compared; may be nil
	Begun    func(from fmt.Stringer)     // a file is being copied; may be nil
	Copied   func(from, to fmt.Stringer) // a file was copied; may be nil
	Failed   func(err error)             // a file was not copied; may be nil
	Lost     func(err error)             // an attribute or link was not kept; may be nil

	failures, losses, skipped int
	files                     int   // copied, with data
	bytes                     int64 // of those
	moved                     int64 // bytes of the current file that were transferred

	links links
	made  []bool // of the directories of the current step: cp made them

	Leftovers *Leftovers // records partial files; may be nil
}

// Failures returns the number of files that were not copied.
func (c *Copier) Failures() int { return c.failures }

// Losses returns the number of owners, times and hard links that were not kept.
func (c *Copier) Losses() int { return c.losses }

// Skipped returns the number of files that were up to date.
func (c *Copier) Skipped() int { return c.skipped }

// Done returns the number of copied files with data, and their bytes.
func (c *Copier) Done() (files int, bytes int64) { return c.files, c.bytes }

// Work returns the total of the progress of a plan, in bytes.
func (c *Copier) Work(p *Plan) int64 { return c.share(p.Bytes) }

// share returns the progress for so many bytes of a file.
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

// Fatal reports whether an error concerns a server rather than a file, so that the next
// file would fail, too.
func Fatal(err error) bool { return fatal(err) }

// fatal is Fatal.
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

// Run executes the plan. It returns an error that ended the whole copy; files that were
// not copied are reported to c.Failed and counted.
func (c *Copier) Run(ctx context.Context, p *Plan) error {
	var missing *Place // a directory that could not be made, and what is in it
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

// makeDir makes a directory. Until it is finished the user can write to it, and nobody
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

// finishDir sets the attributes of a directory after its contents were copied.
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

// newPerm returns the permissions of a new file.
func (c *Copier) newPerm(info *Info) fs.FileMode { return info.Mode.Perm() &^ c.Umask }

// set sets the attributes that a copy keeps.
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

// failed adds source and destination to an error: it names the temporary file, which
// the user does not know.
func (s *step) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%v to %v: %w", s.from, s.to, err)
}

// there returns what exists at the destination, and its path without the symbolic links
// that may lead to a directory.
func (s *step) there(ctx context.Context) (string, *Info, error) {
	if s.named {
		return s.to.Tree.Resolve(ctx, s.to.Path)
	}
	info, err := s.to.Tree.Lstat(ctx, s.to.Path)
	return s.to.Path, info, err
}

// target returns the place that the data of a file go to, and the file that exists
// there, nil for none. It follows a symbolic link that the user has named, and others
// only if they lead to a place below the destination.
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

// link makes a symbolic link. It replaces an existing file, but no directory.
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

// node makes a pipe, a socket or a device. It replaces an existing file, but no
// directory.
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

// replace makes a file without data under a temporary name and renames it.
func (c *Copier) replace(ctx context.Context, s *step, make func(part Place) error) error {
	if err := refuseDir(ctx, s.to, s.from); err != nil {
		return err
	}
	part, err := c.newPart(s.to)
	if err != nil {
		return err
	}
	if err := make(part); err != nil {
		return errors.Join(s.failed(err), c.notMade(ctx, part, err))
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

// refuseDir fails if the destination of a file is a directory.
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
	part, err := c.newPart(to)
	if err != nil {
		return err
	}
	out, err := part.Tree.Create(ctx, part.Path, perm)
	if err != nil {
		return errors.Join(s.failed(err), c.notMade(ctx, part, err))
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

// keeps returns the permissions for creating a file, and the attributes to set once its
// data is there. A file that replaces another keeps the permissions and owner of that
// one, but not its set-ID bits, as the data is new.
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
		size := s.info.Size
		if _, ok := s.from.Tree.(*Stdin); ok { // whose size is not known before
			size = c.moved
		}
		c.bytes += size
	}
	if c.Copied != nil {
		c.Copied(s.from, s.to)
	}
}

// same reports whether source and destination are the same file.
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
