// This file says what both sides of a copy can do.

package files

import (
	"context"
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

	// Set sets permissions and times.
	Set(ctx context.Context, name string, meta Meta) error
}

// An Output is a file being written. Close tells what became of all of it, Abort
// gives it up.
type Output interface {
	io.Writer
	io.ReaderFrom
	Close() error
	Abort()
}

// An Info is what is known of a file.
type Info struct {
	Name         string
	Mode         fs.FileMode
	Size         int64
	Atime, Mtime time.Time
	Links        uint32 // hard links
	UID, GID     uint32 // with Links: where the tree has them
}

// Meta is what a copy keeps if asked to. A zero time is not set.
type Meta struct {
	Perm         fs.FileMode
	Atime, Mtime time.Time
}

// meta is what of a file can be kept.
func (i *Info) meta() Meta { return Meta{Perm: i.perm(), Atime: i.Atime, Mtime: i.Mtime} }

// perm is the permissions, with the bits beside them. Those of files that lend the
// rights of an owner are not among them: the owner of a copy is another.
func (i *Info) perm() fs.FileMode {
	bits := fs.ModePerm | fs.ModeSticky
	if i.Mode.IsDir() {
		bits |= fs.ModeSetgid
	}
	return i.Mode & bits
}
