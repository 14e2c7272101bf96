// This file removes files of servers, and folders with what is in them.

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

// A Remover removes files of a server. Folders are gone through by their handles, a
// part of a listing at a time: what a server lets another path lead to meanwhile is
// not touched, and no folder is too large.
type Remover struct {
	Recursive bool // folders, too, with what is in them
	Force     bool // what is not there is no failure

	Removed func(name string) // a file or folder is gone; may be nil
	Failed  func(err error)   // something was not removed, and the rest is; may be nil

	failures int
}

// Failures is how many files and folders were not removed, without the folders that
// they are in.
func (r *Remover) Failures() int { return r.failures }

func (r *Remover) fail(err error) {
	r.failures++
	if r.Failed != nil {
		r.Failed(err)
	}
}

// errKept says that a folder was left as something in it was, which was told.
var errKept = errors.New("some of its contents were not removed")

// Remove removes what is at a path, and no symbolic link's target. Its error is one
// that ended it; what was not removed is told to r.Failed, and counted.
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

// A branch is a folder on the way down to what is removed.
type branch struct {
	dir   *client.Dir
	up    *branch
	depth int
}

// entry removes a file or folder that is in b.
func (r *Remover) entry(ctx context.Context, t *Remote, b *branch, info *client.Info) error {
	var err error
	switch {
	case !info.IsDir():
		err = b.dir.Remove(ctx, info.Name())
	case !r.Recursive:
		return errors.New("it is a directory; -r removes it with its contents")
	default:
		err = r.folder(ctx, t, b, info)
	}
	if err == nil && r.Removed != nil {
		r.Removed(t.Show(path.Join(b.dir.Path(), info.Name())))
	}
	return err
}

func (r *Remover) folder(ctx context.Context, t *Remote, b *branch, info *client.Info) error {
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
		// A server may lose its place in a folder that shrinks, and others may make
		// new files: as long as something goes, so does this.
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

// within removes what is in b, as it is listed, and says whether anything was, and
// whether something stays that cannot be. Its error is one that ends it all.
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
