// This file holds the status codes of NFS version 3, which are errors (RFC 1813
// §2.6).

package nfs

import (
	"errors"
	"fmt"
	"io/fs"
)

// A Stat is how an operation ended (nfsstat3). One that is not OK is an error;
// codes that RFC 1813 does not know pass through.
//
// errors.Is takes [fs.ErrNotExist], [fs.ErrExist], [fs.ErrPermission],
// [fs.ErrInvalid] and [errors.ErrUnsupported] for the codes that say so.
type Stat uint32

// The status codes (nfsstat3).
const (
	OK             Stat = 0
	ErrPerm        Stat = 1     // not the owner
	ErrNoEnt       Stat = 2     // no such file or directory
	ErrIO          Stat = 5     // a hard error
	ErrNXIO        Stat = 6     // no such device or address
	ErrAcces       Stat = 13    // permission denied
	ErrExist       Stat = 17    // the file exists
	ErrXDev        Stat = 18    // a hard link across devices
	ErrNoDev       Stat = 19    // no such device
	ErrNotDir      Stat = 20    // not a directory
	ErrIsDir       Stat = 21    // a directory
	ErrInval       Stat = 22    // an argument that the operation does not take
	ErrFBig        Stat = 27    // beyond the largest size of a file
	ErrNoSpc       Stat = 28    // no space left
	ErrROFS        Stat = 30    // a read-only file system
	ErrMLink       Stat = 31    // too many hard links
	ErrNameTooLong Stat = 63    // a name or path is too long
	ErrNotEmpty    Stat = 66    // a directory is not empty
	ErrDQuot       Stat = 69    // quota exceeded
	ErrStale       Stat = 70    // the file of the handle is gone, or not accessible any more
	ErrRemote      Stat = 71    // too many levels of remote in a path
	ErrBadHandle   Stat = 10001 // the handle is none of this server's
	ErrNotSync     Stat = 10002 // SETATTR: the guard does not hold
	ErrBadCookie   Stat = 10003 // READDIR, READDIRPLUS: the cookie is stale
	ErrNotSupp     Stat = 10004 // the operation is not supported
	ErrTooSmall    Stat = 10005 // the buffer or the request is too small
	ErrServerFault Stat = 10006 // an error that has no other code
	ErrBadType     Stat = 10007 // CREATE, MKNOD: no files of this type
	ErrJukebox     Stat = 10008 // the server has begun and cannot finish in time: try again later
)

var statNames = map[Stat][2]string{
	OK:             {"NFS3_OK", "success"},
	ErrPerm:        {"NFS3ERR_PERM", "operation not permitted"},
	ErrNoEnt:       {"NFS3ERR_NOENT", "no such file or directory"},
	ErrIO:          {"NFS3ERR_IO", "input/output error"},
	ErrNXIO:        {"NFS3ERR_NXIO", "no such device or address"},
	ErrAcces:       {"NFS3ERR_ACCES", "permission denied"},
	ErrExist:       {"NFS3ERR_EXIST", "file exists"},
	ErrXDev:        {"NFS3ERR_XDEV", "link across file systems"},
	ErrNoDev:       {"NFS3ERR_NODEV", "no such device"},
	ErrNotDir:      {"NFS3ERR_NOTDIR", "not a directory"},
	ErrIsDir:       {"NFS3ERR_ISDIR", "is a directory"},
	ErrInval:       {"NFS3ERR_INVAL", "invalid argument"},
	ErrFBig:        {"NFS3ERR_FBIG", "file too large"},
	ErrNoSpc:       {"NFS3ERR_NOSPC", "no space left"},
	ErrROFS:        {"NFS3ERR_ROFS", "read-only file system"},
	ErrMLink:       {"NFS3ERR_MLINK", "too many links"},
	ErrNameTooLong: {"NFS3ERR_NAMETOOLONG", "name too long"},
	ErrNotEmpty:    {"NFS3ERR_NOTEMPTY", "directory not empty"},
	ErrDQuot:       {"NFS3ERR_DQUOT", "quota exceeded"},
	ErrStale:       {"NFS3ERR_STALE", "stale file handle"},
	ErrRemote:      {"NFS3ERR_REMOTE", "too many levels of remote"},
	ErrBadHandle:   {"NFS3ERR_BADHANDLE", "not a file handle of this server"},
	ErrNotSync:     {"NFS3ERR_NOT_SYNC", "changed meanwhile"},
	ErrBadCookie:   {"NFS3ERR_BAD_COOKIE", "stale directory cookie"},
	ErrNotSupp:     {"NFS3ERR_NOTSUPP", "operation not supported"},
	ErrTooSmall:    {"NFS3ERR_TOOSMALL", "buffer or request too small"},
	ErrServerFault: {"NFS3ERR_SERVERFAULT", "error of the server"},
	ErrBadType:     {"NFS3ERR_BADTYPE", "type not supported by the server"},
	ErrJukebox:     {"NFS3ERR_JUKEBOX", "not available at present, try later"},
}

// String is the name of the code: NFS3ERR_NOENT.
func (s Stat) String() string {
	if name, ok := statNames[s]; ok {
		return name[0]
	}
	return fmt.Sprintf("nfsstat3 %d", uint32(s))
}

// Error says in words what the code says.
func (s Stat) Error() string {
	if name, ok := statNames[s]; ok {
		return name[1] + " (" + name[0] + ")"
	}
	return s.String()
}

// Err is nil for OK, else s.
func (s Stat) Err() error {
	if s == OK {
		return nil
	}
	return s
}

// Is reports whether s says what target, an error of the standard library, does.
func (s Stat) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return s == ErrNoEnt
	case fs.ErrExist:
		return s == ErrExist || s == ErrNotEmpty
	case fs.ErrPermission:
		return s == ErrPerm || s == ErrAcces
	case fs.ErrInvalid:
		return s == ErrInval
	case errors.ErrUnsupported:
		return s == ErrNotSupp
	}
	return false
}
