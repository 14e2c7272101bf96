// This file holds open files and directories of the Linux backend.

package folder

import (
	"encoding/binary"
	"io"
	"math"

	"golang.org/x/sys/unix"
)

// A linuxFile is an open regular file.
type linuxFile struct {
	fd   int
	self *identity
}

func (v *linuxVolume) open(o object, write bool) (file, error) {
	flags := unix.O_RDONLY
	if write {
		flags = unix.O_WRONLY
	}
	fd, err := v.reopen(fdOf(o), flags)
	if err != nil {
		return nil, err
	}
	return &linuxFile{fd: fd, self: &v.self}, nil
}

func (f *linuxFile) close() { unix.Close(f.fd) }

// pieceSize is how many octets are read or written in one system call. Go hands the processor of
// a call that takes longer than some 20 us to another thread, and takes it back afterwards, which
// costs more than several calls.
const pieceSize = 128 << 10

func (f *linuxFile) readAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(f.fd, p[n:min(len(p), n+pieceSize)], off+int64(n))
		switch {
		case err == unix.EINTR:
		case err != nil && n > 0:
			return n, nil // the READ of the rest returns the error
		case err != nil:
			return 0, err
		case m == 0:
			return n, nil
		default:
			n += m
		}
	}
	return n, nil
}

// writeAt writes as c, so that the kernel clears the set-uid and set-gid bits as it does for
// that user.
func (f *linuxFile) writeAt(c *creds, p []byte, off int64) (n int, err error) {
	err = f.self.as(c, func() error {
		for n < len(p) {
			m, err := unix.Pwrite(f.fd, p[n:min(len(p), n+pieceSize)], off+int64(n))
			switch {
			case err == unix.EINTR:
			case err != nil && n > 0:
				return nil
			case err != nil:
				return err
			case m == 0:
				return io.ErrShortWrite
			default:
				n += m
			}
		}
		return nil
	})
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *linuxFile) truncate(c *creds, size int64) error {
	return f.self.as(c, func() error {
		return retry(func() error { return unix.Ftruncate(f.fd, size) })
	})
}

func (f *linuxFile) sync() error     { return retry(func() error { return unix.Fsync(f.fd) }) }
func (f *linuxFile) datasync() error { return retry(func() error { return unix.Fdatasync(f.fd) }) }

// A linuxDir reads a directory.
type linuxDir struct {
	fd  int
	buf [32 << 10]byte
}

func (v *linuxVolume) readDir(o object) (dirReader, error) {
	fd, err := v.reopen(fdOf(o), unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &linuxDir{fd: fd}, nil
}

func (d *linuxDir) close() { unix.Close(d.fd) }

// read continues at a position of the file system.
func (d *linuxDir) read(cookie uint64, f func(*dirent) bool) (end bool, err error) {
	if cookie > math.MaxInt64 {
		return false, unix.EINVAL
	}
	if _, err := unix.Seek(d.fd, int64(cookie), io.SeekStart); err != nil {
		return false, err
	}
	for {
		n, err := unix.Getdents(d.fd, d.buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return false, err
		case n == 0:
			return true, nil
		}
		if !direntsOf(d.buf[:n], f) {
			return false, nil
		}
	}
}

// direntsOf parses linux_dirent64: inode, next position, length, type and the name, which
// ends with a zero.
func direntsOf(b []byte, f func(*dirent) bool) bool {
	for len(b) > 19 {
		size := int(binary.NativeEndian.Uint16(b[16:]))
		if size < 19 || size > len(b) {
			return true
		}
		name := b[19:size]
		for i, c := range name {
			if c == 0 {
				name = name[:i]
				break
			}
		}
		e := dirent{
			name:   string(name),
			ino:    binary.NativeEndian.Uint64(b),
			cookie: binary.NativeEndian.Uint64(b[8:]),
			dir:    b[18] == unix.DT_DIR || b[18] == unix.DT_UNKNOWN,
		}
		if !f(&e) {
			return false
		}
		b = b[size:]
	}
	return true
}
