// This file changes names and attributes in the Linux backend.

package folder

import (
	"errors"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/nfs"
)

func (v *linuxVolume) create(c *creds, dir object, name string, mode uint32) (object, file, error) {
	spare, err := v.spare()
	if err != nil {
		return nil, nil, err
	}
	var fd int
	err = v.self.as(c, func() error {
		return retry(func() (err error) {
			fd, err = unix.Openat(fdOf(dir), name,
				unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, mode)
			return err
		})
	})
	unix.Close(spare)
	if err != nil {
		return nil, nil, err
	}
	f := &linuxFile{fd: fd, self: &v.self}
	path, err := v.reopen(fd, unix.O_PATH)
	if err != nil {
		f.close()
		return nil, nil, err
	}
	o := &linuxObject{path}
	if err := v.unmask(c, dir, o, mode); err != nil {
		o.close()
		f.close()
		return nil, nil, err
	}
	return o, f, nil
}

// spare returns a descriptor to close before another one is needed. Without it, an object
// could be made but not opened, and the client's next attempt would find it in its way.
func (v *linuxVolume) spare() (int, error) {
	return unix.FcntlInt(uintptr(v.top.fd), unix.F_DUPFD_CLOEXEC, 0)
}

func (v *linuxVolume) mkdir(c *creds, dir object, name string, mode uint32) (object, error) {
	return v.make(c, dir, name, nfs.TypeDir, mode, func() error { return unix.Mkdirat(fdOf(dir), name, mode) })
}

func (v *linuxVolume) symlink(c *creds, dir object, name, target string) (object, error) {
	return v.make(c, dir, name, nfs.TypeLnk, 0, func() error { return unix.Symlinkat(target, fdOf(dir), name) })
}

func (v *linuxVolume) mknod(c *creds, dir object, name string, t nfs.FileType, mode uint32, spec nfs.Specdata) (object, error) {
	format, dev := uint32(unix.S_IFIFO), uint64(0)
	switch t {
	case nfs.TypeSock:
		format = unix.S_IFSOCK
	case nfs.TypeChr:
		format, dev = unix.S_IFCHR, unix.Mkdev(spec.Major, spec.Minor)
	case nfs.TypeBlk:
		format, dev = unix.S_IFBLK, unix.Mkdev(spec.Major, spec.Minor)
	}
	if dev != uint64(uint32(dev)) || unix.Major(dev) != spec.Major && dev != 0 {
		return nil, unix.EINVAL // Linux has 12 bits of major and 20 of minor numbers
	}
	return v.make(c, dir, name, t, mode, func() error {
		return unix.Mknodat(fdOf(dir), name, format|mode, int(int32(dev)))
	})
}

// make calls f, which makes an object without opening it, and looks the object up. A user
// who may change the directory could have replaced it. Such an object is left alone.
func (v *linuxVolume) make(c *creds, dir object, name string, t nfs.FileType, mode uint32, f func() error) (object, error) {
	spare, err := v.spare()
	if err != nil {
		return nil, err
	}
	err = v.self.as(c, func() error { return retry(f) })
	unix.Close(spare)
	if err != nil {
		return nil, err
	}
	o, st, err := v.lookup(serverCreds, dir, name)
	if err != nil {
		return nil, err
	}
	if st.Type != t || st.UID != v.uid(c) || t != nfs.TypeDir && st.NLink != 1 {
		o.close()
		return nil, unix.EAGAIN
	}
	if t != nfs.TypeLnk {
		if err := v.unmask(c, dir, o, mode); err != nil {
			o.close()
			return nil, err
		}
	}
	return o, nil
}

// unmask adds the permissions that the umask of this process has removed from a new object;
// the client has applied the caller's umask. If the directory has a default ACL, umasks do not
// apply, and neither does unmask.
func (v *linuxVolume) unmask(c *creds, dir, o object, mode uint32) error {
	st, err := v.stat(o)
	if err != nil {
		return err
	}
	if mode&0o777&^st.Mode == 0 {
		return nil
	}
	n, err := unix.Getxattr(v.procPath(dir), "system.posix_acl_default", nil)
	if err == nil && n > 0 {
		return nil
	}
	return v.chmod(c, o, st.Mode|mode&0o777)
}

func (v *linuxVolume) procPath(o object) string { return "/proc/self/fd/" + strconv.Itoa(fdOf(o)) }

func (v *linuxVolume) link(c *creds, o, dir object, name string) error {
	return v.self.as(c, func() error {
		return retry(func() error {
			return unix.Linkat(v.proc, strconv.Itoa(fdOf(o)), fdOf(dir), name, unix.AT_SYMLINK_FOLLOW)
		})
	})
}

func (v *linuxVolume) rename(c *creds, from object, fromName string, to object, toName string) error {
	return v.self.as(c, func() error {
		return retry(func() error { return unix.Renameat(fdOf(from), fromName, fdOf(to), toName) })
	})
}

func (v *linuxVolume) remove(c *creds, dir object, name string) error {
	return v.self.as(c, func() error {
		return retry(func() error { return unix.Unlinkat(fdOf(dir), name, 0) })
	})
}

func (v *linuxVolume) rmdir(c *creds, dir object, name string) error {
	return v.self.as(c, func() error {
		return retry(func() error { return unix.Unlinkat(fdOf(dir), name, unix.AT_REMOVEDIR) })
	})
}

func (v *linuxVolume) chmod(c *creds, o object, mode uint32) error {
	return v.self.as(c, func() error {
		return retry(func() error { return unix.Fchmodat(v.proc, strconv.Itoa(fdOf(o)), mode, 0) })
	})
}

func (v *linuxVolume) chown(c *creds, o object, uid, gid uint32) error {
	return v.self.as(c, func() error {
		return retry(func() error {
			return unix.Fchownat(fdOf(o), "", int(int32(uid)), int(int32(gid)), unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
		})
	})
}

func (v *linuxVolume) chtimes(c *creds, o object, atime, mtime nfs.SetTime) error {
	var ts [2]unix.Timespec
	for i, t := range []nfs.SetTime{atime, mtime} {
		switch t.How {
		case nfs.DontChange:
			ts[i].Nsec = unix.UTIME_OMIT
		case nfs.SetToServerTime:
			ts[i].Nsec = unix.UTIME_NOW
		default:
			var err error
			if ts[i], err = unix.TimeToTimespec(t.Time.Time()); err != nil {
				return unix.EINVAL
			}
		}
	}
	set := func() error {
		return retry(func() error { return unix.UtimesNanoAt(v.proc, strconv.Itoa(fdOf(o)), ts[:], 0) })
	}
	err := v.self.as(c, set)
	// A user who may write may set times to the server's, but utimensat permits only both
	// at once. Linux clients set mtime alone when they open a file with O_TRUNC.
	one := atime.How == nfs.DontChange && mtime.How == nfs.SetToServerTime ||
		atime.How == nfs.SetToServerTime && mtime.How == nfs.DontChange
	if err == unix.EPERM && one {
		if err = v.access(c, o, mayWrite); err == nil {
			err = v.self.as(serverCreds, set)
		}
	}
	return err
}

func (v *linuxVolume) access(c *creds, o object, rights uint32) error {
	return v.self.as(c, func() error {
		return retry(func() error { return unix.Faccessat2(fdOf(o), "", rights, unix.AT_EMPTY_PATH|unix.AT_EACCESS) })
	})
}

func (v *linuxVolume) readlink(o object) (string, error) {
	buf := make([]byte, nfs.MaxPath)
	n, err := unix.Readlinkat(fdOf(o), "", buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

// sync opens o and syncs it. If it cannot be opened, sync syncs the whole file system.
func (v *linuxVolume) sync(o object) error {
	st, err := v.stat(o)
	if err != nil {
		return err
	}
	if st.Type == nfs.TypeReg || st.Type == nfs.TypeDir {
		fd, err := v.reopen(fdOf(o), unix.O_RDONLY)
		if errors.Is(err, unix.EACCES) && st.Type == nfs.TypeReg {
			fd, err = v.reopen(fdOf(o), unix.O_WRONLY)
		}
		if err == nil {
			defer unix.Close(fd)
			return retry(func() error { return unix.Fsync(fd) })
		}
	}
	return retry(func() error { return unix.Syncfs(v.dir) })
}
