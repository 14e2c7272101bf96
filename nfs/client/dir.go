// This file works on directories by handle, for programs that change many files of one
// directory.

package client

import (
	"context"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/weft-rdma/weft/nfs"
)

// A Dir is a directory, by its handle: its methods work on that directory, wherever its
// path leads to now. It needs no closing. Its methods may be called by many goroutines.
// They take names of files in the directory, not paths.
type Dir struct {
	fs   *FS
	info *Info
	path string
}

// OpenDir finds a directory. It follows symbolic links.
func (f *FS) OpenDir(ctx context.Context, name string) (*Dir, error) {
	w, err := f.walk(ctx, name, true)
	if err != nil {
		return nil, err
	}
	d := &Dir{fs: f, info: w.here(), path: w.name()}
	if !d.info.IsDir() {
		return nil, failed(nfs.ProcLookup, name, nfs.ErrNotDir)
	}
	return d, nil
}

// Path returns the path of the directory when it was found, without symbolic links.
func (d *Dir) Path() string { return d.path }

// Info returns the directory's attributes when it was found.
func (d *Dir) Info() *Info { return d.info }

// Sub returns the Dir of a directory in d that was looked up or listed.
func (d *Dir) Sub(info *Info) *Dir {
	return &Dir{fs: d.fs, info: info, path: path.Join(d.path, info.name)}
}

// Lookup looks up a file, which may be a symbolic link.
func (d *Dir) Lookup(ctx context.Context, name string) (*Info, error) {
	if err := d.checkName(nfs.ProcLookup, name); err != nil {
		return nil, err
	}
	return d.fs.lookup(ctx, d.info, name, d.fullPath(name))
}

// Remove removes a file other than a directory.
func (d *Dir) Remove(ctx context.Context, name string) error {
	return d.remove(ctx, nfs.ProcRemove, name)
}

// Rmdir removes an empty directory.
func (d *Dir) Rmdir(ctx context.Context, name string) error {
	return d.remove(ctx, nfs.ProcRmdir, name)
}

func (d *Dir) remove(ctx context.Context, proc nfs.Proc, name string) error {
	if err := d.checkName(proc, name); err != nil {
		return err
	}
	return d.fs.removeFrom(ctx, proc, d.info, name, d.fullPath(name))
}

func (d *Dir) fullPath(name string) string { return strings.TrimSuffix(d.path, "/") + "/" + name }

// checkName refuses names that do not name one file in d.
func (d *Dir) checkName(proc nfs.Proc, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return failed(proc, d.path, fmt.Errorf("%w: %q is not a file name", nfs.ErrInval, name))
	}
	return nil
}

// streamListing is the size of a part of a listing, in octets. It is small because a
// program that walks a tree holds a part for each directory on its path.
const streamListing = 16 << 10

// Entries lists the directory as FS.ReadDir does, but in the server's order, and with one
// part of it in memory at a time. It ends with the first error. [nfs.ErrBadCookie] says
// that the directory has changed so that the server cannot continue; the caller may list it
// again.
func (d *Dir) Entries(ctx context.Context) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		l := listing{f: d.fs, dir: d.info, path: d.path, size: streamListing, endless: true}
		for {
			eof, err := l.part(ctx)
			if err != nil && l.adapt(err) {
				continue
			}
			for _, info := range l.found {
				if !yield(info, nil) {
					return
				}
			}
			l.found = nil
			if err != nil {
				yield(nil, err)
				return
			}
			if eof {
				return
			}
		}
	}
}
