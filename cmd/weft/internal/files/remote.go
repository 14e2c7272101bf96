// This file is the tree of an export of a server.

package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"strings"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/nfs/client"
)

// Remote is the files of a mounted export.
type Remote struct {
	FS   *client.FS
	Name string // of the export, for messages: nfs://host/path

	Server string // the beginning of Name that is no path: nfs://host
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

// URL returns the URL of a path, whatever bytes it contains.
func (r *Remote) URL(name string) string {
	elems := strings.Split(path.Join("/", strings.TrimPrefix(r.Show(name), r.Server)), "/")
	for i := range elems {
		elems[i] = url.PathEscape(elems[i])
	}
	return r.Server + strings.Join(elems, "/")
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
		ID:   ID{i.Attr.FSID, i.Attr.FileID},
		Used: int64(min(i.Attr.Used, 1<<63-1)), Device: Device(i.Attr.Rdev),
		Ctime: i.Attr.Ctime.Time(),
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

// Write fails: the devices and pipes of an export are those of the client's machine.
func (r *Remote) Write(_ context.Context, name string) (Output, error) {
	return nil, fmt.Errorf("%s is not a regular file", r.Show(name))
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

func (r *Remote) Link(ctx context.Context, old, name string) error {
	return r.FS.Link(ctx, old, name)
}

func (r *Remote) Mknod(ctx context.Context, name string, mode fs.FileMode, dev Device) error {
	var kind nfs.FileType
	switch t := mode.Type(); {
	case t&fs.ModeNamedPipe != 0:
		kind = nfs.TypeFifo
	case t&fs.ModeSocket != 0:
		kind = nfs.TypeSock
	case t&fs.ModeCharDevice != 0:
		kind = nfs.TypeChr
	case t&fs.ModeDevice != 0:
		kind = nfs.TypeBlk
	default:
		return fmt.Errorf("%s: %w: NFS has no files of type %v", r.Show(name), errors.ErrUnsupported, t)
	}
	_, err := r.FS.Mknod(ctx, name, kind, nfs.Specdata(dev), client.Mode(uint32(mode.Perm())))
	return err
}

func (r *Remote) Set(ctx context.Context, name string, m Meta) error {
	info, err := r.FS.Lstat(ctx, name)
	if err != nil {
		return err
	}
	kept, lost := r.setOwner(ctx, info, m.Owner)
	var refused *OwnerError
	if lost != nil && !errors.As(lost, &refused) {
		return lost
	}
	if !kept {
		m.Perm = disowned(m.Perm)
	}
	var attr nfs.SetAttributes
	if !m.Symlink {
		attr = client.Mode(modeBits(m.Perm))
	}
	if !m.Mtime.IsZero() {
		attr.Mtime = nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.TimeOf(m.Mtime)}
	}
	if !m.Atime.IsZero() {
		attr.Atime = nfs.SetTime{How: nfs.SetToClientTime, Time: nfs.TimeOf(m.Atime)}
	}
	err = r.FS.SetAttrOf(ctx, info, attr)
	if m.Symlink && (errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid)) {
		err = nil // not every server can (RFC 1813 §3.3.2 asks for none)
	}
	if err != nil {
		return err
	}
	if held := heldTime(r, m.Mtime); held.Unix() != m.Mtime.Unix() {
		return errors.Join(lost, &TimeError{m.Mtime})
	}
	return lost
}

// setOwner sets the owner with a separate call, because servers clear the set-ID bits
// when the owner changes, some also those of the same call. A caller who may not give a
// file away may still set one of its own groups.
func (r *Remote) setOwner(ctx context.Context, info *client.Info, to *Owner) (kept bool, err error) {
	if !to.real() {
		return false, nil
	}
	if info.Attr.UID == to.UID && info.Attr.GID == to.GID {
		return true, nil
	}
	gid := nfs.SetUint32{Set: true, Value: to.GID}
	err = r.FS.SetAttrOf(ctx, info, nfs.SetAttributes{UID: nfs.SetUint32{Set: true, Value: to.UID}, GID: gid})
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, errors.ErrUnsupported) {
		return false, err
	}
	if fatal := r.FS.SetAttrOf(ctx, info, nfs.SetAttributes{GID: gid}); fatal != nil && ctx.Err() != nil {
		return false, fatal
	}
	if r.FS.Caller().UID != 0 {
		return false, nil
	}
	return false, &OwnerError{*to, err}
}

// modeBits converts permissions to those of NFS.
func modeBits(perm fs.FileMode) uint32 {
	mode := uint32(perm.Perm())
	for _, bit := range [...]struct {
		fs  fs.FileMode
		nfs uint32
	}{{fs.ModeSetuid, nfs.ModeSetUID}, {fs.ModeSetgid, nfs.ModeSetGID}, {fs.ModeSticky, nfs.ModeSticky}} {
		if perm&bit.fs != 0 {
			mode |= bit.nfs
		}
	}
	return mode
}
