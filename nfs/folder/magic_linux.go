// This file holds properties of Linux file systems that no system call returns.

package folder

import "golang.org/x/sys/unix"

// A magic is the type of a file system, as in statfs.
type magic uint32

const (
	magicXFS  magic = 0x58465342
	magicF2FS magic = 0xf2f52010
	magicZFS  magic = 0x2fc12fc1
)

// stableCookies reports whether directory positions stay valid when other entries come and
// go, for all descriptors, and whether entries have the numbers of their inodes. Tmpfs is
// not included, because it has such positions only since Linux 6.6. Overlayfs is not,
// because it counts entries.
func (m magic) stableCookies() bool {
	switch m {
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, magicXFS, magicF2FS, magicZFS:
		return true
	}
	return false
}

// births reports whether the birth time of an inode is constant. In overlayfs it changes
// when a file is copied up.
func (m magic) births() bool { return m != unix.OVERLAYFS_SUPER_MAGIC }

// linkMax is the limit of hard links to a file. If it is unknown it is the one that Linux
// guarantees for POSIX.
func (m magic) linkMax() uint32 {
	switch m {
	case unix.EXT4_SUPER_MAGIC:
		return 65000
	case magicXFS, magicZFS:
		return 1<<31 - 1
	case unix.BTRFS_SUPER_MAGIC:
		return 65535
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		return 1
	case unix.TMPFS_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, magicF2FS:
		return 32000
	}
	return 127
}

func (m magic) foldsCase() bool {
	return m == unix.MSDOS_SUPER_MAGIC || m == unix.EXFAT_SUPER_MAGIC
}
