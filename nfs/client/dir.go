// This file holds directories by their handles, for those who change many files in
// one.

package client

import (
	"context"
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/weft-rdma/weft/nfs"
)

// A Dir is a directory by its handle: what is done in it is done there, whatever
// its path leads to by now. It needs no closing, and its methods may be called by
// many goroutines. Names are those of files in it, and no paths.
type Dir struct {
	fs   *FS
	info *Info
	path string
}

// OpenDir finds a directory, through symbolic links.
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

// Path is the path of the directory, without symbolic links, when it was found.
func (d *Dir) Path() string { return d.path }

// Info is the directory when it was found.
func (d *Dir) Info() *Info { return d.info }

// Sub is a directory in d that was looked up or listed.
func (d *Dir) Sub(info *Info) *Dir {
	return &Dir{fs: d.fs, info: info, path: path.Join(d.path, info.name)}
}

// Lookup looks at a file, which may be a symbolic link.
func (d *Dir) Lookup(ctx context.Context, name string) (*Info, error) {
	if err := d.checkName(nfs.ProcLookup, name); err != nil {
		return nil, err
	}
	return d.fs.lookup(ctx, d.info, name, d.whole(name))
}

// Remove removes a file that is no directory.
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
	return d.fs.removeFrom(ctx, proc, d.info, name, d.whole(name))
}

func (d *Dir) whole(name string) string { return strings.TrimSuffix(d.path, "/") + "/" + name }

// checkName refuses what is no name of one file in d.
func (d *Dir) checkName(proc nfs.Proc, name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return failed(proc, d.path, fmt.Errorf("%w: %q is no name of a file", nfs.ErrInval, name))
	}
	return nil
}

// A part of a listing in octets: little, as those who go down a tree have one in
// hand for each directory on the way.
const streamListing = 16 << 10

// Entries lists the directory as FS.ReadDir does, but in the server's order, and with
// no more than a part of it in memory, however much there is. It ends with the first
// error. That is [nfs.ErrBadCookie] when the directory has changed so that the
// server does not know where to go on: whoever can, begins anew.
func (d *Dir) Entries(ctx context.Context) iter.Seq2[*Info, error] {
	return func(yield func(*Info, error) bool) {
		l := listing{f: d.fs, dir: d.info, path: d.path, size: streamListing, endless: true}
		for {
			eof, err := l.part(ctx)
			if err != nil && l.otherwise(err) {
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
