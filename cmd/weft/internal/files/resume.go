// This file finds files that an earlier copy has completed.

package files

import (
	"context"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

// unchanged reports whether an existing copy is up to date.
func (c *Copier) unchanged(ctx context.Context, s *step, at Place, old *Info) (bool, error) {
	switch {
	case !c.Resume || old.Size != s.info.Size:
		return false, nil
	case !c.Checksum:
		return sameTime(old.Mtime, heldTime(at.Tree, s.info.Mtime)), nil
	}
	quiet := new(Copier) // what is read to compare is no progress of a copy
	want, err := quiet.sum(ctx, s.from)
	if err != nil {
		return false, s.failed(err)
	}
	got, err := quiet.sum(ctx, at)
	return err == nil && got == want, fatalAlone(err)
}

// fatalAlone returns err if it ends the whole copy. A file that cannot be read can
// still be replaced.
func fatalAlone(err error) error {
	if err != nil && fatal(err) {
		return err
	}
	return nil
}

// sameTime reports whether two times are equal at the resolution of the file systems:
// some keep whole seconds, some microseconds.
func sameTime(a, b time.Time) bool {
	for _, unit := range [...]time.Duration{time.Microsecond, time.Second} {
		ta, tb := a.Truncate(unit), b.Truncate(unit)
		if ta.Equal(tb) && (unit == time.Microsecond || a.Equal(ta) || b.Equal(tb)) {
			return true
		}
	}
	return false
}

// heldTime returns the time that files of a tree have in place of when: NFS has times
// from 1970 to 2106 only.
func heldTime(t Tree, when time.Time) time.Time {
	if _, ok := t.(*Remote); ok && !when.IsZero() {
		return nfs.TimeOf(when).Time()
	}
	return when
}

// skip keeps the data of an existing file, whose attributes are old.
func (c *Copier) skip(ctx context.Context, s *step, at Place, old *Info) error {
	if err := c.align(ctx, s, at, old); err != nil {
		return err
	}
	c.skipped++
	if s.info.Mode.IsRegular() {
		c.count(c.share(s.info.Size))
		c.remember(ctx, s, at)
	}
	return nil
}

// align updates the permissions, owner and time of an existing file, if they are to be
// kept and differ.
func (c *Copier) align(ctx context.Context, s *step, at Place, old *Info) error {
	want, has := s.info.meta(), old.meta()
	if !c.Preserve ||
		(want.Symlink || want.Perm == has.Perm) && sameTime(heldTime(at.Tree, want.Mtime), has.Mtime) &&
			(want.Owner == nil || has.Owner != nil && *want.Owner == *has.Owner) {
		return nil
	}
	return c.set(ctx, s, at, want)
}
