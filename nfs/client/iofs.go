// This file makes an io/fs.FS of an export.

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/weft-rdma/weft/nfs"
)

// IOFS returns the export as a read-only [fs.FS], whose calls end with the context. It is
// an [fs.StatFS], [fs.ReadDirFS], [fs.ReadFileFS] and [fs.ReadLinkFS]. Package io/fs cannot
// name files whose names are not UTF-8.
func (f *FS) IOFS(ctx context.Context) fs.FS { return ioFS{f, ctx} }

type ioFS struct {
	fs  *FS
	ctx context.Context
}

var (
	_ fs.StatFS     = ioFS{}
	_ fs.ReadDirFS  = ioFS{}
	_ fs.ReadFileFS = ioFS{}
	_ fs.ReadLinkFS = ioFS{}
)

// pathError makes an error of package io/fs, with the path as the caller has named it.
func pathError(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		err = fmt.Errorf("%s: %w", e.Proc, e.Err)
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// named sets the name of an Info to the one it was asked for by; the root is ".".
func named(i *Info, name string) *Info {
	if name == "." {
		i.name = name
	} else {
		i.name = lastElement(name)
	}
	return i
}

func (s ioFS) info(op, name string, look func(context.Context, string) (*Info, error)) (*Info, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	info, err := look(s.ctx, name)
	if err != nil {
		return nil, pathError(op, name, err)
	}
	return named(info, name), nil
}

func (s ioFS) Stat(name string) (fs.FileInfo, error) {
	info, err := s.info("stat", name, s.fs.Stat)
	if err != nil {
		return nil, err
	}
	return info, nil
}

func (s ioFS) Lstat(name string) (fs.FileInfo, error) {
	info, err := s.info("lstat", name, s.fs.Lstat)
	if err != nil {
		return nil, err
	}
	return info, nil
}

func (s ioFS) ReadLink(name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
	}
	target, err := s.fs.Readlink(s.ctx, name)
	return target, pathError("readlink", name, err)
}

func (s ioFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	infos, err := s.fs.ReadDir(s.ctx, name)
	if err != nil {
		return nil, pathError("readdir", name, err)
	}
	entries := make([]fs.DirEntry, len(infos))
	for i := range infos {
		entries[i] = fs.FileInfoToDirEntry(infos[i])
	}
	return entries, nil
}

func (s ioFS) ReadFile(name string) ([]byte, error) {
	info, err := s.info("open", name, s.fs.Stat)
	if err != nil {
		return nil, err
	}
	file, err := s.fs.file(nfs.ProcRead, name, info)
	if err != nil {
		return nil, pathError("read", name, err)
	}
	r := file.NewReader(s.ctx, 0)
	defer r.Close()
	data, err := io.ReadAll(r)
	return data, pathError("read", name, err)
}

// Open looks up the file. A directory is listed when ReadDir asks for entries.
func (s ioFS) Open(name string) (fs.File, error) {
	info, err := s.info("open", name, s.fs.Stat)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return &ioDir{fs: s, name: name, info: info}, nil
	}
	file, err := s.fs.file(nfs.ProcRead, name, info)
	if err != nil {
		return nil, pathError("open", name, err)
	}
	return &ioFile{r: file.NewReader(s.ctx, 0), name: name, info: info}, nil
}

// An ioFile is an open file of an ioFS.
type ioFile struct {
	r    *Reader
	name string
	info *Info
}

func (f *ioFile) Stat() (fs.FileInfo, error) { return f.info, nil }

func (f *ioFile) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = pathError("read", f.name, err)
	}
	return n, err
}

func (f *ioFile) WriteTo(w io.Writer) (int64, error) { return f.r.WriteTo(w) }

func (f *ioFile) Close() error { return f.r.Close() }

// An ioDir is an open directory of an ioFS.
type ioDir struct {
	fs      ioFS
	name    string
	info    *Info
	entries []fs.DirEntry // not yet returned
	listed  bool
}

func (d *ioDir) Stat() (fs.FileInfo, error) { return d.info, nil }

func (d *ioDir) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: errors.New("is a directory")}
}

func (d *ioDir) Close() error { return nil }

func (d *ioDir) ReadDir(n int) ([]fs.DirEntry, error) {
	if !d.listed {
		entries, err := d.fs.ReadDir(d.name)
		if err != nil {
			return nil, err
		}
		d.entries, d.listed = entries, true
	}
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	entries := d.entries[:n:n]
	d.entries = d.entries[n:]
	return entries, nil
}
