// This file defines what the server needs from a file system. The Linux backend works on
// descriptors, the portable one on names below an os.Root.

package folder

import (
	"errors"

	"github.com/weft-rdma/weft/nfs"
)

// A key identifies an inode, with its birth time if the file system records that.
type key struct {
	dev uint64 // 0: that of the root
	ino uint64
	gen uint64 // birth time in nanoseconds, or 0
}

// An info holds the attributes and the key of an object.
type info struct {
	nfs.Attributes
	key key
}

// An object refers to a file of any type until it is closed, also when the file is
// renamed.
type object interface {
	close()
}

// A file is an open regular file.
type file interface {
	// readAt reads until p is full or the file ends.
	readAt(p []byte, off int64) (int, error)
	// writeAt writes p as c. It returns an error only if it has written nothing.
	writeAt(c *creds, p []byte, off int64) (int, error)
	truncate(c *creds, size int64) error
	sync() error
	datasync() error
	close()
}

// A dirent is an entry as the directory has it. For a mount point ino is not that of the
// mounted file system's root, for example.
type dirent struct {
	name   string
	ino    uint64
	cookie uint64 // where the listing continues after it
	dir    bool   // it is a directory, or may be one
}

// A dirReader lists a directory. One goroutine at a time may use it.
type dirReader interface {
	// read calls f for the entries after a cookie, including "." and "..", until f
	// returns false. Cookie 0 stands for the start; it is the only one if positions are
	// not stable. read reports whether it has come to the end of the directory.
	read(cookie uint64, f func(*dirent) bool) (end bool, err error)
	close()
}

// Rights for access, and the id that chown leaves as it is.
const (
	mayRead    = 4
	mayWrite   = 2
	mayExecute = 1

	keepID = noID
)

// A volumeInfo holds the properties of a whole file system.
type volumeInfo struct {
	total, free, avail uint64 // octets
	files, freeFiles   uint64
	linkMax, nameMax   uint32
	caseInsensitive    bool
	links, symlinks    bool   // hard links and symbolic links are supported
	tick               uint32 // resolution of times, in nanoseconds
	maxFile            uint64
}

// A volume is the file system below the root of the export. Methods with creds act as that
// caller, the others as the server. Names are single names other than "." and "..". Errors
// are those of the system. Many goroutines may use it.
type volume interface {
	root() object

	// perCaller reports whether methods act as callers. If not, all act as the server.
	perCaller() bool

	stat(o object) (info, error)

	// access returns an error if the caller does not have the rights.
	access(c *creds, o object, rights uint32) error

	// lookup does not follow symbolic links. parent returns the directory above dir,
	// or errOutside.
	lookup(c *creds, dir object, name string) (object, info, error)
	parent(c *creds, dir object) (object, info, error)

	// inside returns errOutside if o is no longer below the root, or no longer has the
	// name by which it was opened.
	inside(o object) error

	open(o object, write bool) (file, error)
	readDir(o object) (dirReader, error)
	readlink(o object) (string, error)

	// create makes a regular file that does not exist, and opens it for writing.
	create(c *creds, dir object, name string, mode uint32) (object, file, error)
	mkdir(c *creds, dir object, name string, mode uint32) (object, error)
	symlink(c *creds, dir object, name, target string) (object, error)
	mknod(c *creds, dir object, name string, t nfs.FileType, mode uint32, dev nfs.Specdata) (object, error)

	link(c *creds, o object, dir object, name string) error
	rename(c *creds, from object, fromName string, to object, toName string) error
	remove(c *creds, dir object, name string) error
	rmdir(c *creds, dir object, name string) error

	chmod(c *creds, o object, mode uint32) error
	chown(c *creds, o object, uid, gid uint32) error
	chtimes(c *creds, o object, atime, mtime nfs.SetTime) error

	// sync writes attributes, and the entries of a directory, to stable storage.
	sync(o object) error

	volumeInfo() (volumeInfo, error)

	// trueInodes reports whether directory entries have the numbers of their inodes, so that
	// a search need not look up all of them.
	trueInodes() bool

	// stableCookies reports whether cookies stay valid when other entries come and go, and
	// for other readers.
	stableCookies() bool

	// names reports whether a name can name a file. The name is neither empty nor too
	// long, and contains no slash and no zero.
	names(name string) bool

	// maxOpen is the limit of open objects and files.
	maxOpen() int

	// uid is the user that the caller acts as.
	uid(c *creds) uint32

	close()
}

var (
	errOutside = errors.New("folder: no longer in the export")
	errMount   = errors.New("folder: on another file system, which is mounted there")
)

// fileID is the inode's number, combined with the device if that is not the root's.
func (k key) fileID() uint64 {
	if k.dev == 0 {
		return k.ino
	}
	return k.ino ^ (k.dev*0x9e3779b97f4a7c15 | 1<<63)
}
