// This file turns errors of the system into codes of NFS, as the Linux server does.

package folder

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/weft-rdma/weft/nfs"
)

// stats is asked in order: some systems have one number for two errors.
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
	{syscall.EBUSY, nfs.ErrAcces},   // something is mounted on it
	{syscall.ETXTBSY, nfs.ErrAcces}, // it is being executed
	{syscall.ELOOP, nfs.ErrAcces},   // a symbolic link, which nobody follows here
	{syscall.EOVERFLOW, nfs.ErrInval},

	// What may be well when tried again.
	{syscall.EAGAIN, nfs.ErrJukebox},
	{syscall.EINTR, nfs.ErrJukebox},
	{syscall.ENOBUFS, nfs.ErrJukebox},
	{syscall.ENOLCK, nfs.ErrJukebox},
	{syscall.ETIMEDOUT, nfs.ErrJukebox},
	{syscall.ENOMEM, nfs.ErrJukebox},
	{syscall.EMFILE, nfs.ErrJukebox},
	{syscall.ENFILE, nfs.ErrJukebox},
}

// statOf is the code for err, OK for nil.
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

// passing reports whether an error says nothing about the file that was asked for,
// and may be gone the next time: it must never make a handle stale.
func passing(err error) bool { return err != nil && statOf(err) == nfs.ErrJukebox }

// exhausted reports whether there are no descriptors left, in the process or the
// system.
func exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
