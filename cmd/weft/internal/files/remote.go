// This file holds the files of an export.

package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

// Remote is the files of a mounted export.
type Remote struct {
	FS   *client.FS
	Name string // of the export, for messages: nfs://host/path
}

var _ Tree = (*Remote)(nil)

func (*Remote) Join(dir, name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("a file cannot be named %q on the server", name)
	}
	return path.Join("/", dir, name), nil
}

func (*Remote) Dir(name string) string { return path.Dir(path.Clean("/" + name)) }

func (*Remote) Base(name string) string { return path.Base("/" + name) }

func (*Remote) Inside(name, dir string) bool {
	name, dir = path.Clean("/"+name), path.Clean("/"+dir)
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}

func (r *Remote) Show(name string) string {
	return strings.TrimSuffix(r.Name, "/") + path.Join("/", name)
}

func (r *Remote) Resolve(ctx context.Context, name string) (string, *Info, error) {
	name, info, err := r.FS.Resolve(ctx, name)
	if err != nil {
		return "", nil, err
	}
	return name, remoteInfo(info), nil
}

func (r *Remote) Lstat(ctx context.Context, name string) (*Info, error) {
	info, err := r.FS.Lstat(ctx, name)
	if err != nil {
		return nil, err
	}
	return remoteInfo(info), nil
}

func remoteInfo(i *client.Info) *Info {
	return &Info{
		Name: i.Name(), Mode: i.Mode(), Size: i.Size(), Mtime: i.ModTime(), Atime: i.Attr.Atime.Time(),
		Links: i.Attr.NLink, UID: i.Attr.UID, GID: i.Attr.GID,
	}
}

func (r *Remote) ReadDir(ctx context.Context, name string) ([]*Info, error) {
	list, err := r.FS.ReadDir(ctx, name)
	if err != nil {
		return nil, err
	}
	infos := make([]*Info, len(list))
	for i := range list {
		infos[i] = remoteInfo(list[i])
	}
	return infos, nil
}

func (r *Remote) Readlink(ctx context.Context, name string) (string, error) {
	return r.FS.Readlink(ctx, name)
}

func (r *Remote) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	f, err := r.FS.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return f.NewReader(ctx, 0), nil
}

func (r *Remote) Create(ctx context.Context, name string, perm fs.FileMode) (Output, error) {
	f, err := r.FS.Create(ctx, name, nfs.Guarded, client.Mode(uint32(perm.Perm())))
	if err != nil {
		return nil, err
	}
	return f.NewWriter(ctx, 0), nil
}

// Write fails: devices and pipes of an export are its clients', not the server's.
func (r *Remote) Write(_ context.Context, name string) (Output, error) {
	return nil, fmt.Errorf("%s is no regular file", r.Show(name))
}

func (r *Remote) Mkdir(ctx context.Context, name string, perm fs.FileMode) error {
	_, err := r.FS.Mkdir(ctx, name, client.Mode(uint32(perm.Perm())))
	return err
}

func (r *Remote) Symlink(ctx context.Context, target, name string) error {
	_, err := r.FS.Symlink(ctx, target, name)
	return err
}

func (r *Remote) Rename(ctx context.Context, from, to string) error {
	return r.FS.Rename(ctx, from, to)
}

func (r *Remote) Remove(ctx context.Context, name string) error { return r.FS.Remove(ctx, name) }

func (r *Remote) Set(ctx context.Context, name string, m Meta) error {
	mode := uint32(m.Perm.Perm())
	for _, bit := range [...]struct {
		fs  fs.FileMode
		nfs uint32
	}{{fs.ModeSetuid, nfs.ModeSetUID}, {fs.ModeSetgid, nfs.ModeSetGID}, {fs.ModeSticky, nfs.ModeSticky}} {
		if m.Perm&bit.fs != 0 {
			mode |= bit.nfs
		}
	}
	attr := client.Mode(mode)
	if !m.Mtime.IsZero() {
		attr.Mtime = nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.TimeOf(m.Mtime)}
	}
	if !m.Atime.IsZero() {
		attr.Atime = nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.TimeOf(m.Atime)}
	}
	return r.FS.LsetAttr(ctx, name, attr)
}
