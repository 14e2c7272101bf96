// This file turns errors of the system into statuses of NFS, as Linux's server does.

package folder

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/weft-rdma/weft/nfs"
)

// stats is searched in order, because on some systems two errors have one number.
var stats = []struct {
	errno syscall.Errno
	stat  nfs.Stat
}{
	{syscall.EPERM, nfs.ErrPerm},
	{syscall.ENOENT, nfs.ErrNoEnt},
	{syscall.EIO, nfs.ErrIO},
	{syscall.ENXIO, nfs.ErrNXIO},
	{syscall.EACCES, nfs.ErrAcces},
	{syscall.EEXIST, nfs.ErrExist},
	{syscall.EXDEV, nfs.ErrXDev},
	{syscall.ENODEV, nfs.ErrNoDev},
	{syscall.ENOTDIR, nfs.ErrNotDir},
	{syscall.EISDIR, nfs.ErrIsDir},
	{syscall.EINVAL, nfs.ErrInval},
	{syscall.EFBIG, nfs.ErrFBig},
	{syscall.ENOSPC, nfs.ErrNoSpc},
	{syscall.EROFS, nfs.ErrROFS},
	{syscall.EMLINK, nfs.ErrMLink},
	{syscall.ENAMETOOLONG, nfs.ErrNameTooLong},
	{syscall.ENOTEMPTY, nfs.ErrNotEmpty},
	{syscall.EDQUOT, nfs.ErrDQuot},
	{syscall.ESTALE, nfs.ErrStale},
	{syscall.EOPNOTSUPP, nfs.ErrNotSupp},
	{syscall.ENOTSUP, nfs.ErrNotSupp},
	{syscall.ENOSYS, nfs.ErrNotSupp},
	{syscall.EBUSY, nfs.ErrAcces},   // a mount point
	{syscall.ETXTBSY, nfs.ErrAcces}, // being executed
	{syscall.ELOOP, nfs.ErrAcces},   // a symbolic link, which is not followed here
	{syscall.EOVERFLOW, nfs.ErrInval},

	// Errors that may be gone at the next attempt.
	{syscall.EAGAIN, nfs.ErrJukebox},
	{syscall.EINTR, nfs.ErrJukebox},
	{syscall.ENOBUFS, nfs.ErrJukebox},
	{syscall.ENOLCK, nfs.ErrJukebox},
	{syscall.ETIMEDOUT, nfs.ErrJukebox},
	{syscall.ENOMEM, nfs.ErrJukebox},
	{syscall.EMFILE, nfs.ErrJukebox},
	{syscall.ENFILE, nfs.ErrJukebox},
}

// statOf returns the status for err, OK for nil.
func statOf(err error) nfs.Stat {
	var stat nfs.Stat
	var errno syscall.Errno
	switch {
	case err == nil:
		return nfs.OK
	case errors.As(err, &stat):
		return stat
	case errors.Is(err, errOutside):
		return nfs.ErrStale
	case errors.Is(err, errMount):
		return nfs.ErrAcces
	case errors.As(err, &errno):
		for _, s := range stats {
			if s.errno == errno {
				return s.stat
			}
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nfs.ErrNoEnt
	case errors.Is(err, fs.ErrExist):
		return nfs.ErrExist
	case errors.Is(err, fs.ErrPermission):
		return nfs.ErrAcces
	case errors.Is(err, errors.ErrUnsupported):
		return nfs.ErrNotSupp
	}
	return nfs.ErrIO
}

// temporary reports whether an error is temporary. Such an error says nothing about the
// file, and must never make a handle stale.
func temporary(err error) bool { return err != nil && statOf(err) == nfs.ErrJukebox }

// exhausted reports whether the process or the system has run out of descriptors.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
