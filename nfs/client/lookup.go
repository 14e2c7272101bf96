// This file resolves paths.

package client

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/weft-rdma/weft/nfs"
)

// maxLinks bounds the symbolic links that are followed in a path.
const maxLinks = 40

// Stat returns the attributes of the file at a path. It follows symbolic links.
func (f *FS) Stat(ctx context.Context, path string) (*Info, error) {
	w, err := f.walk(ctx, path, true)
	if err != nil {
		return nil, err
	}
	return w.here(), nil
}

// Lstat returns the attributes of the file at a path, which may be a symbolic link.
func (f *FS) Lstat(ctx context.Context, path string) (*Info, error) {
	w, err := f.walk(ctx, path, false)
	if err != nil {
		return nil, err
	}
	return w.here(), nil
}

// Resolve follows symbolic links, and returns the file's path without any, and its
// attributes.
func (f *FS) Resolve(ctx context.Context, name string) (string, *Info, error) {
	w, err := f.walk(ctx, name, true)
	if err != nil {
		return "", nil, err
	}
	return w.name(), w.here(), nil
}

// Readlink reads a symbolic link.
func (f *FS) Readlink(ctx context.Context, path string) (string, error) {
	info, err := f.Lstat(ctx, path)
	if err != nil {
		return "", err
	}
	return f.readlink(ctx, info, path)
}

func (f *FS) readlink(ctx context.Context, link *Info, path string) (string, error) {
	var res nfs.ReadlinkRes
	err := f.do(ctx, nfs.ProcReadlink, &nfs.ReadlinkArgs{Symlink: link.FH}, &res, &res.Stat, nil)
	return res.Path, failed(nfs.ProcReadlink, path, err)
}

// A walk is the resolution of a path, as far as it has come.
type walk struct {
	f     *FS
	path  string  // the whole path, for errors
	infos []*Info // from the root to the present file; the root is not part of name
	links int
}

func (w *walk) here() *Info { return w.infos[len(w.infos)-1] }

// name is the path of the present file, without symbolic links.
func (w *walk) name() string {
	var s strings.Builder
	for _, i := range w.infos[1:] {
		s.WriteByte('/')
		s.WriteString(i.name)
	}
	if s.Len() == 0 {
		return "/"
	}
	return s.String()
}

// walk resolves a path. It follows a symbolic link at its end if follow is set or the
// path ends with a slash.
func (f *FS) walk(ctx context.Context, name string, follow bool) (*walk, error) {
	root := *f.root
	w := &walk{f: f, path: name, infos: []*Info{&root}}
	if strings.Trim(name, "/") == "" { // the root: get its present attributes
		attr, err := f.getattr(ctx, f.root.FH, "/")
		if err != nil {
			return nil, err
		}
		root.Attr = *attr
		return w, nil
	}
	return w, w.resolve(ctx, name, follow || strings.HasSuffix(name, "/"))
}

// resolve resolves a path from the present file on.
func (w *walk) resolve(ctx context.Context, name string, follow bool) error {
	elems := strings.Split(name, "/")
	for i, elem := range elems {
		switch elem {
		case "", ".":
			continue
		case "..":
			if len(w.infos) == 1 {
				return failed(nfs.ProcLookup, w.path, ErrOutside)
			}
			w.infos = w.infos[:len(w.infos)-1]
			continue
		}
		dir := w.here()
		if !dir.IsDir() {
			return failed(nfs.ProcLookup, w.path, nfs.ErrNotDir)
		}
		info, err := w.f.lookup(ctx, dir, elem, path.Join(w.name(), elem))
		if err != nil {
			return err
		}
		last := !slices.ContainsFunc(elems[i+1:], func(s string) bool { return s != "" && s != "." })
		if info.Attr.Type != nfs.TypeLnk || last && !follow {
			w.infos = append(w.infos, info)
			continue
		}
		if err := w.follow(ctx, info, path.Join(w.name(), elem)); err != nil {
			return err
		}
	}
	if strings.HasSuffix(name, "/") && !w.here().IsDir() {
		return failed(nfs.ProcLookup, w.path, nfs.ErrNotDir)
	}
	return nil
}

// follow follows a symbolic link. The target of an absolute link is a path on the server,
// which has to lead into the export.
func (w *walk) follow(ctx context.Context, link *Info, name string) error {
	if w.links++; w.links > maxLinks {
		return failed(nfs.ProcLookup, w.path, ErrLoop)
	}
	target, err := w.f.readlink(ctx, link, name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(target, "/") {
		mounted := path.Clean("/" + w.f.export)
		clean := path.Clean(target)
		if !inside(clean, mounted) {
			return failed(nfs.ProcLookup, name, fmt.Errorf("the link to %s %w", target, ErrOutside))
		}
		w.infos = w.infos[:1]
		target = strings.TrimPrefix(clean, mounted)
	}
	return w.resolve(ctx, target, true)
}

// parent resolves the directory of a path, and returns the last name of the path, which is
// to be made, removed or renamed.
func (f *FS) parent(ctx context.Context, proc nfs.Proc, name string) (dir *Info, last string, err error) {
	trimmed := strings.TrimRight(name, "/")
	before, last := path.Split(trimmed)
	if last == "" || last == "." || last == ".." {
		return nil, "", failed(proc, name, nfs.ErrInval)
	}
	w, err := f.walk(ctx, before, true)
	if err != nil {
		return nil, "", err
	}
	if dir = w.here(); !dir.IsDir() {
		return nil, "", failed(proc, name, nfs.ErrNotDir)
	}
	return dir, last, nil
}

// lookup looks up a name in a directory; fullPath is for errors.
func (f *FS) lookup(ctx context.Context, dir *Info, name, fullPath string) (*Info, error) {
	var res nfs.LookupRes
	var info *Info
	err := f.do(ctx, nfs.ProcLookup, &nfs.DirOpArgs{Dir: dir.FH, Name: name}, &res, &res.Stat, func() {
		info = newInfo(name, res.Object, &res.Attr.Attr)
	})
	if err != nil {
		return nil, failed(nfs.ProcLookup, fullPath, err)
	}
	return f.withAttr(ctx, info, res.Attr.Follows, fullPath)
}

// withAttr returns info with attributes. It calls GETATTR if they did not follow, as a
// server may leave them out of the results of other procedures.
func (f *FS) withAttr(ctx context.Context, info *Info, follows bool, fullPath string) (*Info, error) {
	if follows {
		return info, nil
	}
	attr, err := f.getattr(ctx, info.FH, fullPath)
	if err != nil {
		return nil, err
	}
	info.Attr = *attr
	return info, nil
}

func (f *FS) getattr(ctx context.Context, fh nfs.FH, fullPath string) (*nfs.Attributes, error) {
	var res nfs.GetattrRes
	err := f.do(ctx, nfs.ProcGetattr, &nfs.GetattrArgs{Object: fh}, &res, &res.Stat, nil)
	if err != nil {
		return nil, failed(nfs.ProcGetattr, fullPath, err)
	}
	return &res.Attr, nil
}

// lastElement is the last name of a path.
func lastElement(name string) string { return path.Base("/" + name) }
