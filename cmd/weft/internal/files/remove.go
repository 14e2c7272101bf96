// This file removes files of servers, and directories with what is in them.

package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

// A Remover removes files of a server. It walks directories by their file handles, so
// that a path that changes meanwhile does no harm, and reads listings in parts, so that
// no directory is too large.
type Remover struct {
	Recursive bool // directories, too, with what is in them
	Force     bool // what is not there is no failure

	Removed func(name string) // a file or directory is gone; may be nil
	Failed  func(err error)   // something was not removed, and the rest is; may be nil

	failures int
}

// Failures returns the number of files and directories that were not removed, not
// counting the directories above them.
func (r *Remover) Failures() int { return r.failures }

func (r *Remover) fail(err error) {
	r.failures++
	if r.Failed != nil {
		r.Failed(err)
	}
}

// errKept says that a directory was kept because of its contents, which were reported.
var errKept = errors.New("some of its contents were not removed")

// Remove removes the file or directory at a path, never the target of a symbolic link.
// It returns an error that ended it; files that were not removed are reported to
// r.Failed and counted.
func (r *Remover) Remove(ctx context.Context, t *Remote, name string) error {
	err := r.remove(ctx, t, name)
	switch {
	case err == nil || errors.Is(err, errKept):
		return nil
	case ctx.Err() != nil || fatal(err):
		return err
	case r.Force && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, nfs.ErrNotDir) && !strings.HasSuffix(name, "/")):
		return nil
	}
	r.fail(fmt.Errorf("%s: %w", t.Show(name), err))
	return nil
}

func (r *Remover) remove(ctx context.Context, t *Remote, name string) error {
	clean := path.Clean("/" + name)
	if clean == "/" {
		return errors.New("it is the root of an export, which cannot be removed; name its contents")
	}
	dir, err := t.FS.OpenDir(ctx, path.Dir(clean))
	if err != nil {
		return err
	}
	info, err := dir.Lookup(ctx, path.Base(clean))
	if err != nil {
		return err
	}
	if strings.HasSuffix(name, "/") && !info.IsDir() {
		return nfs.ErrNotDir
	}
	return r.entry(ctx, t, &branch{dir: dir}, info)
}

// A branch is a directory on the path to the file that is removed.
type branch struct {
	dir   *client.Dir
	up    *branch
	depth int
}

// entry removes a file or directory in b.
func (r *Remover) entry(ctx context.Context, t *Remote, b *branch, info *client.Info) error {
	var err error
	switch {
	case !info.IsDir():
		err = b.dir.Remove(ctx, info.Name())
	case !r.Recursive:
		return errors.New("it is a directory; -r removes it with its contents")
	default:
		err = r.directory(ctx, t, b, info)
	}
	if err == nil && r.Removed != nil {
		r.Removed(t.Show(path.Join(b.dir.Path(), info.Name())))
	}
	return err
}

func (r *Remover) directory(ctx context.Context, t *Remote, b *branch, info *client.Info) error {
	if b.depth == maxDepth {
		return fmt.Errorf("directories more than %d levels deep", maxDepth)
	}
	for up := b; up != nil; up = up.up {
		if bytes.Equal(up.dir.Info().FH, info.FH) {
			return fmt.Errorf("%w: the directory contains itself", client.ErrServer)
		}
	}
	sub := &branch{dir: b.dir.Sub(info), up: b, depth: b.depth + 1}
	for {
		removed, kept, err := r.within(ctx, t, sub)
		if err != nil {
			return err
		}
		if kept {
			return errKept
		}
		// A server may lose its place in a directory that shrinks, and others may make
		// new files: repeat as long as something was removed.
		err = b.dir.Rmdir(ctx, info.Name())
		if !removed || !isNotEmpty(err) {
			return err
		}
	}
}

func isNotEmpty(err error) bool {
	var stat nfs.Stat
	return errors.As(err, &stat) && (stat == nfs.ErrNotEmpty || stat == nfs.ErrExist)
}

// within removes the contents of b as they are listed. It reports whether anything was
// removed, and whether anything could not be. An error ends the whole removal.
func (r *Remover) within(ctx context.Context, t *Remote, b *branch) (removed, kept bool, err error) {
	for info, err := range b.dir.Entries(ctx) {
		name := b.dir.Path()
		if err == nil {
			name = path.Join(name, info.Name())
			err = r.entry(ctx, t, b, info)
		} else if removed && errors.Is(err, nfs.ErrBadCookie) {
			return removed, kept, nil
		}
		switch {
		case err == nil:
			removed = true
		case errors.Is(err, errKept):
			kept = true
		case errors.Is(err, fs.ErrNotExist): // gone already
		case ctx.Err() != nil || fatal(err):
			return removed, kept, err
		default:
			kept = true
			r.fail(fmt.Errorf("%s: %w", t.Show(name), err))
		}
	}
	return removed, kept, nil
}
