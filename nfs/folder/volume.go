// This file holds what the server asks of a file system. The backend of Linux
// works on descriptors, that of other systems on names below an os.Root.

package folder

import (
	"errors"

	"github.com/weft-rdma/weft/nfs"
)

// A key identifies an inode, and its birth where the file system knows it.
type key struct {
	dev uint64 // 0: the one of the root
	ino uint64
	gen uint64 // time of birth in nanoseconds, or 0
}

// An info is what is known of an object: its attributes and its key.
type info struct {
	nfs.Attributes
	key key
}

// An object refers to a file of whatever type for as long as it is not closed,
// under whatever name the file goes then.
type object interface {
	close()
}

// A file is a regular file that is open.
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

// A dirent is an entry of a directory as the directory has it: of an object below
// a mount point, for instance, ino is not the one that it has by itself.
type dirent struct {
	name   string
	ino    uint64
	cookie uint64 // where the listing goes on
	dir    bool   // it is, or may be, a directory
}

// A dirReader lists a directory. It is for one goroutine at a time.
type dirReader interface {
	// read calls f for the entries behind a cookie, 0 for the start, until f
	// returns false. "." and ".." are among them. It reports whether the directory
	// has ended. Where positions do not last, 0 is the only cookie.
	read(cookie uint64, f func(*dirent) bool) (end bool, err error)
	close()
}

// Rights asked about, and the times and owners that stay as they are.
const (
	mayRead    = 4
	mayWrite   = 2
	mayExecute = 1

	keepID = noID
)

// A volumeInfo is what there is to say about a whole file system.
type volumeInfo struct {
	total, free, avail uint64 // octets
	files, freeFiles   uint64
	linkMax, nameMax   uint32
	caseInsensitive    bool
	links, symlinks    bool   // hard and symbolic ones can be made
	tick               uint32 // of times, in nanoseconds
	maxFile            uint64
}

// A volume is a file system below the root of the folder. Those methods that take
// creds act as that caller, the others as the server. Names are single ones,
// neither "." nor "..". Errors are those of the system. Many goroutines use it.
type volume interface {
	root() object

	// others reports whether there are callers: otherwise all act as the server.
	others() bool

	stat(o object) (info, error)

	// access reports by an error that the caller has not the rights.
	access(c *creds, o object, rights uint32) error

	// lookup does not follow symbolic links. parent is the directory above dir, or
	// errOutside.
	lookup(c *creds, dir object, name string) (object, info, error)
	parent(c *creds, dir object) (object, info, error)

	// inside fails with errOutside if o is not below the root any more, or not by the
	// name that it was found by.
	inside(o object) error

	open(o object, write bool) (file, error)
	readDir(o object) (dirReader, error)
	readlink(o object) (string, error)

	// create makes a regular file that was not there, and opens it for writing.
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

	// sync brings attributes, and the entries of a directory, to stable storage.
	sync(o object) error

	volumeInfo() (volumeInfo, error)

	// honest reports whether entries of directories have the numbers of their
	// inodes, so that a search needs to look at no others.
	honest() bool

	// positions reports whether the cookies of entries stay what they are when other
	// entries come and go, and for other readers.
	positions() bool

	// names reports whether a name, which is neither empty nor longer than others,
	// can be one of a file and nothing else.
	names(name string) bool

	// maxOpen is how many objects and files may be open at a time.
	maxOpen() int

	// uid is the user whose files are the caller's own.
	uid(c *creds) uint32

	close()
}

var (
	errOutside = errors.New("folder: not in the folder any more")
	errMount   = errors.New("folder: something is mounted there")
)

// fileID is the number of the inode, mixed with its device if that is another than
// the root's.
func (k key) fileID() uint64 {
	if k.dev == 0 {
		return k.ino
	}
	return k.ino ^ (k.dev*0x9e3779b97f4a7c15 | 1<<63)
}
