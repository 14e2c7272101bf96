// This file holds what is known of a file.

package client

import (
	"io/fs"
	"slices"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

// An Info is a file as it was when it was looked at. It is an [fs.FileInfo].
type Info struct {
	name string
	FH   nfs.FH
	Attr nfs.Attributes
}

var _ fs.FileInfo = (*Info)(nil)

// newInfo copies the handle, which is in a message.
func newInfo(name string, fh nfs.FH, attr *nfs.Attributes) *Info {
	return &Info{name: name, FH: slices.Clone(fh), Attr: *attr}
}

// Name is the last element of the path, "/" for the root.
func (i *Info) Name() string { return i.name }

// Size is the length in octets.
func (i *Info) Size() int64 { return int64(min(i.Attr.Size, 1<<63-1)) }

// Mode is type and permissions.
func (i *Info) Mode() fs.FileMode { return i.Attr.FileMode() }

// ModTime is when the data were last changed.
func (i *Info) ModTime() time.Time { return i.Attr.Mtime.Time() }

// IsDir reports whether it is a directory.
func (i *Info) IsDir() bool { return i.Attr.Type == nfs.TypeDir }

// Sys is a [*nfs.Attributes].
func (i *Info) Sys() any { return &i.Attr }
