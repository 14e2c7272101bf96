// This file is the interface of both sides of a copy.

package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// A Tree is the files of this machine or of an export. Names are paths in the tree.
type Tree interface {
	// Join returns the path of a file in a directory. It fails if name is not a valid
	// name of a file there.
	Join(dir, name string) (string, error)

	// Dir and Base return a path without its last name, and that name. Base returns "/"
	// or "." for a path without names.
	Dir(name string) string
	Base(name string) string

	// Inside reports whether a path, without symbolic links, is dir or below it.
	Inside(name, dir string) bool

	// Show returns the path as the user writes it.
	Show(name string) string

	// Resolve follows symbolic links and returns the final path and file. Lstat does
	// not follow them.
	Resolve(ctx context.Context, name string) (string, *Info, error)
	Lstat(ctx context.Context, name string) (*Info, error)

	ReadDir(ctx context.Context, name string) ([]*Info, error)
	Readlink(ctx context.Context, name string) (string, error)

	// Open opens a regular file.
	Open(ctx context.Context, name string) (io.ReadCloser, error)

	// Create makes a file, which must not exist.
	Create(ctx context.Context, name string, perm fs.FileMode) (Output, error)

	// Write opens an existing file that is not regular, such as a device.
	Write(ctx context.Context, name string) (Output, error)

	Mkdir(ctx context.Context, name string, perm fs.FileMode) error
	Symlink(ctx context.Context, target, name string) error
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error

	// Link gives the file at old a second name. It does not follow symbolic links.
	Link(ctx context.Context, old, name string) error

	// Mknod makes a pipe, a socket or a device.
	Mknod(ctx context.Context, name string, mode fs.FileMode, dev Device) error

	// Set sets owner, permissions and times. If the owner could not be set the error
	// is an [*OwnerError], if the tree has no such time a [*TimeError], and if both
	// they are joined. The rest is set then.
	Set(ctx context.Context, name string, meta Meta) error
}

// An Output is a file being written. Skip leaves a hole of n bytes. Close reports any
// error of writing; Abort gives the file up.
type Output interface {
	io.Writer
	io.ReaderFrom
	Skip(n int64) error
	Close() error
	Abort()
}

// An Info holds the attributes of a file.
type Info struct {
	Name         string
	Mode         fs.FileMode
	Size         int64
	Atime, Mtime time.Time

	// Attributes of some trees only: if Links is 0, none of them is known.
	Links    uint32 // hard links
	UID, GID uint32
	ID       ID
	Used     int64 // bytes on disk
	Device   Device
	Ctime    time.Time // of servers' files
}

// An ID identifies a file in its tree.
type ID struct{ FS, File uint64 }

// A Device is the numbers of a device.
type Device struct{ Major, Minor uint32 }

// sparse reports whether a file may have holes.
func (i *Info) sparse() bool { return i.Links > 0 && i.Used < i.Size }

// is reports whether i and j are known to be the same file of a tree.
func (i *Info) is(j *Info) bool { return i.Links > 0 && j.Links > 0 && i.ID == j.ID }

// Meta is the attributes that a copy can keep.
type Meta struct {
	Symlink      bool // it is of a symbolic link, which has no permissions
	Perm         fs.FileMode
	Atime, Mtime time.Time // zero: not set
	Owner        *Owner    // nil: not set
}

// An Owner is user and group.
type Owner struct{ UID, GID uint32 }

// nobody is not a valid user or group: systems take it for "no change".
const nobody = 1<<32 - 1

// real reports whether the owner is valid.
func (o *Owner) real() bool { return o != nil && o.UID != nobody && o.GID != nobody }

// An OwnerError says that a file did not get its owner although the caller is root. For
// other users that is no error.
type OwnerError struct {
	Owner Owner
	Err   error
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("owner %d and group %d were not kept: %v", e.Owner.UID, e.Owner.GID, e.Err)
}

// Unwrap returns Err.
func (e *OwnerError) Unwrap() error { return e.Err }

// A TimeError says that a file did not get its time, because NFS has no such time.
type TimeError struct{ Time time.Time }

func (e *TimeError) Error() string {
	return fmt.Sprintf("the time %s was not kept: NFS has times from 1970 to 2106 only", e.Time.UTC().Format(time.RFC3339))
}

// meta returns the attributes that can be kept.
func (i *Info) meta() Meta {
	m := Meta{Symlink: i.Mode&fs.ModeSymlink != 0, Perm: i.Mode & permBits, Atime: i.Atime, Mtime: i.Mtime}
	if i.Links > 0 {
		m.Owner = &Owner{i.UID, i.GID}
	}
	return m
}

const (
	lends    = fs.ModeSetuid | fs.ModeSetgid // the rights of the owner
	permBits = fs.ModePerm | fs.ModeSticky | lends
)

// disowned returns a mode without the bits that are meant for another owner.
func disowned(mode fs.FileMode) fs.FileMode { return mode &^ (lends | fs.ModeSticky) }
