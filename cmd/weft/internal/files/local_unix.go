//go:build unix

// This file holds what only Unix knows of files.

package files

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// addSystemInfo adds what only Unix knows: the owner, the inode and the device of a file.
func addSystemInfo(i *Info, info fs.FileInfo) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	i.Links, i.UID, i.GID = uint32(st.Nlink), st.Uid, st.Gid
	i.ID = ID{uint64(st.Dev), uint64(st.Ino)}
	i.Used = st.Blocks * 512
	i.Device = Device{unix.Major(uint64(st.Rdev)), unix.Minor(uint64(st.Rdev))}
	i.Atime = accessTime(st)
}

// Umask returns the umask. The system only returns it when it is changed.
var Umask = sync.OnceValue(func() fs.FileMode {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return fs.FileMode(mask) & fs.ModePerm
})

// setOwner sets the owner and reports whether the file has it then. A user who may not
// give a file away may still set one of its own groups.
func setOwner(name string, to *Owner) (kept bool, err error) {
	if !to.real() {
		return false, nil
	}
	info, err := os.Lstat(name)
	if err != nil {
		return false, err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid == to.UID && st.Gid == to.GID {
		return true, nil
	}
	err = os.Lchown(name, int(int32(to.UID)), int(int32(to.GID)))
	if err == nil {
		return true, nil
	}
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EINVAL) {
		return false, err
	}
	os.Lchown(name, -1, int(int32(to.GID)))
	if os.Geteuid() != 0 {
		return false, nil
	}
	return false, &OwnerError{*to, err}
}

// setTimes sets times, also of symbolic links if the file system has them.
func setTimes(name string, m Meta) error {
	if !m.Symlink {
		return os.Chtimes(name, m.Atime, m.Mtime)
	}
	if m.Atime.IsZero() {
		m.Atime = m.Mtime
	}
	var ts [2]unix.Timespec
	var err error
	if ts[0], err = unix.TimeToTimespec(m.Atime); err != nil {
		return err
	}
	if ts[1], err = unix.TimeToTimespec(m.Mtime); err != nil {
		return err
	}
	err = unix.UtimesNanoAt(unix.AT_FDCWD, name, ts[:], unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "utimensat", Path: name, Err: err}
	}
	return nil
}
