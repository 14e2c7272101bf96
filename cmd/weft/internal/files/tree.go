// This file says what both sides of a copy can do.

package files

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// A Tree is files that can be reached: this machine's, or an export's. Names are
// paths as the tree has them.
type Tree interface {
	// Join is the path of a file in a directory. It fails for what is no name of
	// one file there.
	Join(dir, name string) (string, error)

	// Dir and Base are a path up to its last name, and that. Base is "/" or "." for
	// what has none.
	Dir(name string) string
	Base(name string) string

	// Inside reports whether a path, without symbolic links, is dir or below it.
	Inside(name, dir string) bool

	// Show is the path as its user writes it.
	Show(name string) string

	// Resolve follows symbolic links: it returns the path without any, and the
	// file. Lstat looks at the file itself.
	Resolve(ctx context.Context, name string) (string, *Info, error)
	Lstat(ctx context.Context, name string) (*Info, error)

	ReadDir(ctx context.Context, name string) ([]*Info, error)
	Readlink(ctx context.Context, name string) (string, error)

	// Open opens a regular file.
	Open(ctx context.Context, name string) (io.ReadCloser, error)

	// Create makes a file that there was not.
	Create(ctx context.Context, name string, perm fs.FileMode) (Output, error)

	// Write opens what is there and is no regular file, such as a device.
	Write(ctx context.Context, name string) (Output, error)

	Mkdir(ctx context.Context, name string, perm fs.FileMode) error
	Symlink(ctx context.Context, target, name string) error
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error

	// Link gives the file that is at old, which is no symbolic link that would be
	// followed, a second name.
	Link(ctx context.Context, old, name string) error

	// Mknod makes a pipe, a socket or a device.
	Mknod(ctx context.Context, name string, mode fs.FileMode, dev Device) error

	// Set sets owner, permissions and times. If the owner could not be set the error
	// is an [*OwnerError], if the tree has no such time a [*TimeError], and if both
	// they are joined. The rest is set then.
	Set(ctx context.Context, name string, meta Meta) error
}

// An Output is a file being written. Skip leaves a hole of so many bytes. Close
// tells what became of all of it, Abort gives it up.
type Output interface {
	io.Writer
	io.ReaderFrom
	Skip(n int64) error
	Close() error
	Abort()
}

// An Info is what is known of a file.
type Info struct {
	Name         string
	Mode         fs.FileMode
	Size         int64
	Atime, Mtime time.Time

	// What only some trees tell: if Links is 0, none of it is known.
	Links    uint32 // hard links
	UID, GID uint32
	ID       ID
	Used     int64 // bytes on disk
	Device   Device
	Ctime    time.Time // of servers' files
}

// An ID tells a file from all others of its tree.
type ID struct{ FS, File uint64 }

// A Device is the numbers of one.
type Device struct{ Major, Minor uint32 }

// sparse reports whether a file may have holes.
func (i *Info) sparse() bool { return i.Links > 0 && i.Used < i.Size }

// is reports whether i and j are known to be the same file of a tree.
func (i *Info) is(j *Info) bool { return i.Links > 0 && j.Links > 0 && i.ID == j.ID }

// Meta is what a copy keeps if asked to.
type Meta struct {
	Symlink      bool // it is of a symbolic link, which has no permissions
	Perm         fs.FileMode
	Atime, Mtime time.Time // zero: not set
	Owner        *Owner    // nil: not set
}

// An Owner is user and group.
type Owner struct{ UID, GID uint32 }

// nobody is no user and no group: to systems it says that nothing changes.
const nobody = 1<<32 - 1

// real reports whether there can be such an owner.
func (o *Owner) real() bool { return o != nil && o.UID != nobody && o.GID != nobody }

// An OwnerError says that a file did not get its owner, from a caller who may give
// files away. To others it is no error.
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

// meta is what of a file can be kept.
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

// disowned is a mode for who is not the owner that it was meant for.
func disowned(mode fs.FileMode) fs.FileMode { return mode &^ (lends | fs.ModeSticky) }
