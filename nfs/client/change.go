// This file changes names and attributes.

package client

import (
	"context"

	"github.com/weft-rdma/weft/nfs"
)

// Mode returns the attributes of a new file with the given permissions.
func Mode(perm uint32) nfs.SetAttributes {
	return nfs.SetAttributes{Mode: nfs.SetUint32{Set: true, Value: perm & nfs.ModeMask}}
}

// Mkdir makes a directory.
func (f *FS) Mkdir(ctx context.Context, path string, attr nfs.SetAttributes) (*Info, error) {
	return f.make(ctx, nfs.ProcMkdir, path, func(where nfs.DirOpArgs) message {
		return &nfs.MkdirArgs{Where: where, Attr: attr}
	})
}

// Symlink makes a symbolic link at path to target, which may be any octets.
func (f *FS) Symlink(ctx context.Context, target, path string) (*Info, error) {
	return f.make(ctx, nfs.ProcSymlink, path, func(where nfs.DirOpArgs) message {
		return &nfs.SymlinkArgs{Where: where, Attr: Mode(0o777), Path: target}
	})
}

// Mknod makes a device, a named pipe or a socket. Only devices use spec.
func (f *FS) Mknod(ctx context.Context, path string, typ nfs.FileType, spec nfs.Specdata, attr nfs.SetAttributes) (*Info, error) {
	return f.make(ctx, nfs.ProcMknod, path, func(where nfs.DirOpArgs) message {
		return &nfs.MknodArgs{Where: where, Type: typ, Attr: attr, Spec: spec}
	})
}

// make makes a file of any type. If the server does not return its handle, make looks it
// up.
func (f *FS) make(ctx context.Context, proc nfs.Proc, path string, args func(nfs.DirOpArgs) message) (*Info, error) {
	dir, name, err := f.parent(ctx, proc, path)
	if err != nil {
		return nil, err
	}
	var res nfs.CreateRes
	var info *Info
	err = f.do(ctx, proc, args(nfs.DirOpArgs{Dir: dir.FH, Name: name}), &res, &res.Stat, func() {
		info = newInfo(name, res.Object.FH, &res.Attr.Attr)
	})
	if err != nil {
		return nil, failed(proc, path, err)
	}
	if !res.Object.Follows {
		return f.lookup(ctx, dir, name, path)
	}
	return f.withAttr(ctx, info, res.Attr.Follows, path)
}

// Remove removes a file other than a directory.
func (f *FS) Remove(ctx context.Context, path string) error {
	return f.remove(ctx, nfs.ProcRemove, path)
}

// Rmdir removes an empty directory.
func (f *FS) Rmdir(ctx context.Context, path string) error {
	return f.remove(ctx, nfs.ProcRmdir, path)
}

func (f *FS) remove(ctx context.Context, proc nfs.Proc, path string) error {
	dir, name, err := f.parent(ctx, proc, path)
	if err != nil {
		return err
	}
	return f.removeFrom(ctx, proc, dir, name, path)
}

// removeFrom removes a name from a directory; fullPath is for errors.
func (f *FS) removeFrom(ctx context.Context, proc nfs.Proc, dir *Info, name, fullPath string) error {
	var res nfs.WccRes
	return failed(proc, fullPath, f.do(ctx, proc, &nfs.DirOpArgs{Dir: dir.FH, Name: name}, &res, &res.Stat, nil))
}

// Rename renames a file. It replaces a file at the path to.
func (f *FS) Rename(ctx context.Context, from, to string) error {
	fromDir, fromName, err := f.parent(ctx, nfs.ProcRename, from)
	if err != nil {
		return err
	}
	toDir, toName, err := f.parent(ctx, nfs.ProcRename, to)
	if err != nil {
		return err
	}
	args := nfs.RenameArgs{From: nfs.DirOpArgs{Dir: fromDir.FH, Name: fromName}, To: nfs.DirOpArgs{Dir: toDir.FH, Name: toName}}
	var res nfs.RenameRes
	return failed(nfs.ProcRename, from, f.do(ctx, nfs.ProcRename, &args, &res, &res.Stat, nil))
}

// Link makes a hard link to the file at from. It does not follow symbolic links.
func (f *FS) Link(ctx context.Context, from, to string) error {
	info, err := f.Lstat(ctx, from)
	if err != nil {
		return err
	}
	dir, name, err := f.parent(ctx, nfs.ProcLink, to)
	if err != nil {
		return err
	}
	args := nfs.LinkArgs{File: info.FH, Link: nfs.DirOpArgs{Dir: dir.FH, Name: name}}
	var res nfs.LinkRes
	return failed(nfs.ProcLink, to, f.do(ctx, nfs.ProcLink, &args, &res, &res.Stat, nil))
}

// SetAttr sets attributes of a file: mode, owner, times, and the size of a regular file.
// It follows symbolic links.
func (f *FS) SetAttr(ctx context.Context, path string, attr nfs.SetAttributes) error {
	info, err := f.Stat(ctx, path)
	if err != nil {
		return err
	}
	return f.setattr(ctx, info.FH, path, attr)
}

// LsetAttr is SetAttr without following a symbolic link. A server may refuse to set
// attributes of a symbolic link.
func (f *FS) LsetAttr(ctx context.Context, path string, attr nfs.SetAttributes) error {
	info, err := f.Lstat(ctx, path)
	if err != nil {
		return err
	}
	return f.setattr(ctx, info.FH, path, attr)
}

// SetAttrOf sets attributes of the file of an Info, wherever its path leads to now. A
// server may refuse to set attributes of a symbolic link.
func (f *FS) SetAttrOf(ctx context.Context, file *Info, attr nfs.SetAttributes) error {
	return f.setattr(ctx, file.FH, file.name, attr)
}

// Truncate sets the size of a file, in octets. A file that grows is filled with zeros.
func (f *FS) Truncate(ctx context.Context, path string, size uint64) error {
	return f.SetAttr(ctx, path, nfs.SetAttributes{Size: nfs.SetUint64{Set: true, Value: size}})
}

func (f *FS) setattr(ctx context.Context, fh nfs.FH, path string, attr nfs.SetAttributes) error {
	var res nfs.WccRes
	err := f.do(ctx, nfs.ProcSetattr, &nfs.SetattrArgs{Object: fh, New: attr}, &res, &res.Stat, nil)
	return failed(nfs.ProcSetattr, path, err)
}

// Access returns which of the given rights the caller has to a file. It follows symbolic
// links.
func (f *FS) Access(ctx context.Context, path string, rights nfs.Access) (nfs.Access, error) {
	info, err := f.Stat(ctx, path)
	if err != nil {
		return 0, err
	}
	var res nfs.AccessRes
	err = f.do(ctx, nfs.ProcAccess, &nfs.AccessArgs{Object: info.FH, Access: rights}, &res, &res.Stat, nil)
	return res.Access & rights, failed(nfs.ProcAccess, path, err)
}

// StatFS returns the space and the number of files of a file system.
func (f *FS) StatFS(ctx context.Context, path string) (*nfs.FsstatRes, error) {
	info, err := f.Stat(ctx, path)
	if err != nil {
		return nil, err
	}
	res := new(nfs.FsstatRes)
	if err := f.do(ctx, nfs.ProcFsstat, &nfs.FsstatArgs{Object: info.FH}, res, &res.Stat, nil); err != nil {
		return nil, failed(nfs.ProcFsstat, path, err)
	}
	return res, nil
}

// PathConf returns the limits for names and links of a file.
func (f *FS) PathConf(ctx context.Context, path string) (*nfs.PathconfRes, error) {
	info, err := f.Stat(ctx, path)
	if err != nil {
		return nil, err
	}
	res := new(nfs.PathconfRes)
	if err := f.do(ctx, nfs.ProcPathconf, &nfs.PathconfArgs{Object: info.FH}, res, &res.Stat, nil); err != nil {
		return nil, failed(nfs.ProcPathconf, path, err)
	}
	return res, nil
}
