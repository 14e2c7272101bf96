// This file holds the attributes of a file.

package client

import (
	"io/fs"
	"slices"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

// An Info is a file's handle and its attributes at one time. It is an [fs.FileInfo].
type Info struct {
	name string
	FH   nfs.FH
	Attr nfs.Attributes
}

var _ fs.FileInfo = (*Info)(nil)

// newInfo makes an Info. It copies the handle, which is part of a message.
func newInfo(name string, fh nfs.FH, attr *nfs.Attributes) *Info {
	return &Info{name: name, FH: slices.Clone(fh), Attr: *attr}
}

// Name is the last element of the path, or "/" for the root.
func (i *Info) Name() string { return i.name }

// Size is the length in octets.
func (i *Info) Size() int64 { return int64(min(i.Attr.Size, 1<<63-1)) }

// Mode is the type and the permissions.
func (i *Info) Mode() fs.FileMode { return i.Attr.FileMode() }

// ModTime is the time of the last change of data.
func (i *Info) ModTime() time.Time { return i.Attr.Mtime.Time() }

// IsDir reports whether the file is a directory.
func (i *Info) IsDir() bool { return i.Attr.Type == nfs.TypeDir }

// Sys returns a [*nfs.Attributes].
func (i *Info) Sys() any { return &i.Attr }
