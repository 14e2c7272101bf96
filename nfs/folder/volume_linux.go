// This file is the Linux backend: how it opens the export, and finds objects. An object is a
// descriptor that refers to an inode without giving access to its data (O_PATH). The file is
// opened for data by the descriptor's name in /proc/self/fd, which leads to that inode only.

package folder

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/nfs"
)

// A linuxVolume is an export on Linux.
type linuxVolume struct {
	self identity

	top  *linuxObject // the root
	dir  int          // the root, open for reading, for syncfs
	proc int          // /proc/self/fd
	fs   magic

	dev   uint64 // of the root
	mount uint64 // mount id of the root; 0 if the kernel does not return it
	fsid  uint64

	maxFile uint64 // octets
}

type linuxObject struct{ fd int }

func (o *linuxObject) close() { unix.Close(o.fd) }

func fdOf(o object) int { return o.(*linuxObject).fd }

func newVolume(c *Config) (volume, error) {
	if c.portable {
		return newPortable(c.Root)
	}
	v := &linuxVolume{dir: -1, proc: -1}
	if err := v.start(c); err != nil {
		v.close()
		return nil, err
	}
	return v, nil
}

func (v *linuxVolume) start(c *Config) (err error) {
	if v.self, err = whoAmI(c.SingleUser); err != nil {
		return err
	}
	if v.proc, err = unix.Open("/proc/self/fd", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return &os.PathError{Op: "open", Path: "/proc/self/fd", Err: fmt.Errorf("%w: /proc must be mounted", err)}
	}
	fd, err := unix.Open(c.Root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: c.Root, Err: err}
	}
	v.top = &linuxObject{fd}
	if v.dir, err = unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return &os.PathError{Op: "open", Path: c.Root, Err: err}
	}
	var st unix.Statx_t
	if err := statx(fd, &st); err != nil {
		return &os.PathError{Op: "statx", Path: c.Root, Err: err}
	}
	v.dev = device(&st)
	if st.Mask&unix.STATX_MNT_ID != 0 {
		v.mount = st.Mnt_id
	}
	var sfs unix.Statfs_t
	if err := statfs(fd, &sfs); err != nil {
		return &os.PathError{Op: "statfs", Path: c.Root, Err: err}
	}
	v.fs = magic(sfs.Type)
	if v.fsid = uint64(uint32(sfs.Fsid.Val[0]))<<32 | uint64(uint32(sfs.Fsid.Val[1])); v.fsid == 0 {
		v.fsid = v.dev
	}
	v.maxFile = math.MaxInt64
	if !c.ReadOnly {
		v.measure()
	}
	return nil
}

// measure finds the limit of file sizes. The file system does not return it, but refuses to
// seek beyond it.
func (v *linuxVolume) measure() {
	fd, err := unix.Openat(v.top.fd, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	v.maxFile = uint64(sort.Search(math.MaxInt, func(n int) bool {
		_, err := unix.Seek(fd, int64(n)+1, io.SeekStart)
		return err != nil
	}))
}

func (v *linuxVolume) close() {
	if v.top != nil {
		v.top.close()
	}
	for _, fd := range []int{v.dir, v.proc} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
}

func (v *linuxVolume) root() object    { return v.top }
func (v *linuxVolume) perCaller() bool { return v.self.change }

func (v *linuxVolume) trueInodes() bool    { return v.fs.stableCookies() }
func (v *linuxVolume) stableCookies() bool { return v.fs.stableCookies() }

// names permits any octets that the server does.
func (v *linuxVolume) names(string) bool { return true }

func (v *linuxVolume) uid(c *creds) uint32 {
	if !v.self.change || c == serverCreds {
		return uint32(v.self.uid)
	}
	return c.uid
}

func (v *linuxVolume) maxOpen() int {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 256
	}
	return int(max(16, min(r.Cur/2, 1<<20)))
}

// statx gets what an info holds, and the mount id.
func statx(fd int, st *unix.Statx_t) error {
	const mask = unix.STATX_BASIC_STATS | unix.STATX_BTIME | unix.STATX_MNT_ID
	return retry(func() error {
		return unix.Statx(fd, "", unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW, mask, st)
	})
}

func statfs(fd int, st *unix.Statfs_t) error {
	return retry(func() error { return unix.Fstatfs(fd, st) })
}

// retry repeats f while signals interrupt it.
func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func device(st *unix.Statx_t) uint64 { return uint64(st.Dev_major)<<32 | uint64(st.Dev_minor) }

// here reports whether st is on the same mount as the root.
func (v *linuxVolume) here(st *unix.Statx_t) bool {
	if v.mount != 0 && st.Mask&unix.STATX_MNT_ID != 0 {
		return st.Mnt_id == v.mount
	}
	return device(st) == v.dev
}

// info converts st. An object on another device but the same mount, as in a subvolume of
// btrfs, gets a file id that contains the device.
func (v *linuxVolume) info(st *unix.Statx_t) info {
	k := key{ino: st.Ino}
	if dev := device(st); dev != v.dev {
		k.dev = dev
	}
	if st.Mask&unix.STATX_BTIME != 0 && v.fs.births() {
		k.gen = uint64(st.Btime.Sec)*1e9 + uint64(st.Btime.Nsec)
	}
	return info{
		Attributes: nfs.Attributes{
			Type:   fileType(uint32(st.Mode)),
			Mode:   uint32(st.Mode) & nfs.ModeMask,
			NLink:  st.Nlink,
			UID:    st.Uid,
			GID:    st.Gid,
			Size:   st.Size,
			Used:   st.Blocks * 512,
			Rdev:   nfs.Specdata{Major: st.Rdev_major, Minor: st.Rdev_minor},
			FSID:   v.fsid,
			FileID: k.fileID(),
			Atime:  statTime(st.Atime),
			Mtime:  statTime(st.Mtime),
			Ctime:  statTime(st.Ctime),
		},
		key: k,
	}
}

func statTime(t unix.StatxTimestamp) nfs.Time {
	switch {
	case t.Sec < 0:
		return nfs.Time{}
	case t.Sec > 1<<32-1:
		return nfs.Time{Sec: 1<<32 - 1, Nsec: 999_999_999}
	}
	return nfs.Time{Sec: uint32(t.Sec), Nsec: t.Nsec}
}

func fileType(mode uint32) nfs.FileType {
	switch mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return nfs.TypeDir
	case unix.S_IFBLK:
		return nfs.TypeBlk
	case unix.S_IFCHR:
		return nfs.TypeChr
	case unix.S_IFLNK:
		return nfs.TypeLnk
	case unix.S_IFSOCK:
		return nfs.TypeSock
	case unix.S_IFIFO:
		return nfs.TypeFifo
	}
	return nfs.TypeReg
}

func (v *linuxVolume) stat(o object) (info, error) {
	var st unix.Statx_t
	if err := statx(fdOf(o), &st); err != nil {
		return info{}, err
	}
	return v.info(&st), nil
}

// path opens a name in dir with O_PATH.
func (v *linuxVolume) path(c *creds, dir int, name string, flags int) (fd int, st unix.Statx_t, err error) {
	err = v.self.as(c, func() error {
		return retry(func() (err error) {
			fd, err = unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
			return err
		})
	})
	if err != nil {
		return -1, st, err
	}
	if err = statx(fd, &st); err != nil {
		unix.Close(fd)
		return -1, st, err
	}
	return fd, st, nil
}

func (v *linuxVolume) lookup(c *creds, dir object, name string) (object, info, error) {
	fd, st, err := v.path(c, fdOf(dir), name, 0)
	if err == nil && !v.here(&st) {
		unix.Close(fd)
		err = errMount
	}
	if err != nil {
		return nil, info{}, err
	}
	return &linuxObject{fd}, v.info(&st), nil
}

func (v *linuxVolume) parent(c *creds, dir object) (object, info, error) {
	fd, st, err := v.path(c, fdOf(dir), "..", unix.O_DIRECTORY)
	if err != nil {
		return nil, info{}, err
	}
	o := &linuxObject{fd}
	if err := v.inside(o); err != nil {
		o.close()
		return nil, info{}, err
	}
	return o, v.info(&st), nil
}

// maxDepth bounds the directories between the root and an object.
const maxDepth = 4096

// inside climbs from a directory to the root. Other files have no parent; for them it asks
// the kernel for the name.
func (v *linuxVolume) inside(o object) error {
	fd, mine := fdOf(o), false
	defer func() {
		if mine {
			unix.Close(fd)
		}
	}()
	var top, st unix.Statx_t
	if err := statx(v.top.fd, &top); err != nil {
		return err
	}
	if err := statx(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return v.named(fd)
	}
	for range maxDepth {
		if !v.here(&st) {
			return errOutside
		}
		if st.Ino == top.Ino && device(&st) == v.dev {
			return nil
		}
		above, next, err := v.path(serverCreds, fd, "..", unix.O_DIRECTORY)
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			return errOutside
		} else if err != nil {
			return err
		}
		if mine {
			unix.Close(fd)
		}
		fd, mine = above, true
		if next.Ino == st.Ino && device(&next) == device(&st) {
			return errOutside // the system's root is its own parent
		}
		st = next
	}
	return errOutside
}

// named returns errOutside if a file's name is not below the root. The kernel returns the
// name by which the file was opened, as it is after renaming. If the file has other hard
// links, that name may be gone or outside, and another one in the export.
func (v *linuxVolume) named(fd int) error {
	top, err := v.pathOf(v.top.fd)
	if err != nil {
		return err
	}
	path, err := v.pathOf(fd)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(path, strings.TrimSuffix(top, "/")+"/") || strings.HasSuffix(path, " (deleted)") {
		return errOutside
	}
	return nil
}

// pathOf is the present path of a descriptor. One that is too long is errOutside.
func (v *linuxVolume) pathOf(fd int) (string, error) {
	buf := make([]byte, 4096)
	n, err := unix.Readlinkat(v.proc, strconv.Itoa(fd), buf)
	switch {
	case err == unix.ENAMETOOLONG, err == nil && n == len(buf):
		return "", errOutside
	case err != nil:
		return "", err
	}
	return string(buf[:n]), nil
}

// reopen opens what a descriptor refers to, with flags.
func (v *linuxVolume) reopen(fd, flags int) (n int, err error) {
	err = retry(func() error {
		// O_NONBLOCK: if another program has a lease, the error is EAGAIN, and the
		// server does not wait.
		n, err = unix.Openat(v.proc, strconv.Itoa(fd), flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		return err
	})
	return n, err
}

func (v *linuxVolume) volumeInfo() (volumeInfo, error) {
	var st unix.Statfs_t
	if err := statfs(v.top.fd, &st); err != nil {
		return volumeInfo{}, err
	}
	block := uint64(st.Frsize)
	if block == 0 {
		block = uint64(st.Bsize)
	}
	return volumeInfo{
		total: st.Blocks * block, free: st.Bfree * block, avail: st.Bavail * block,
		files: st.Files, freeFiles: st.Ffree,
		linkMax: v.fs.linkMax(), nameMax: uint32(st.Namelen),
		caseInsensitive: v.fs.foldsCase(),
		links:           v.fs.linkMax() > 1, symlinks: v.fs.linkMax() > 1, tick: 1,
		maxFile: v.maxFile,
	}, nil
}
