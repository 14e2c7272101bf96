// This file holds what file systems of Linux are known for and nothing tells.

package folder

import "golang.org/x/sys/unix"

// A magic is the type of a file system, as statfs has it.
type magic uint32

const (
	magicXFS  magic = 0x58465342
	magicF2FS magic = 0xf2f52010
	magicZFS  magic = 0x2fc12fc1
)

// stableCookies reports whether the positions that the file system tells in a
// directory stay what they are when other entries come and go, for any descriptor,
// and its entries have the numbers of their inodes. Tmpfs is not among them: it has
// such positions since Linux 6.6 only. Neither is overlayfs, which counts.
func (m magic) stableCookies() bool {
	switch m {
	case unix.EXT4_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, magicXFS, magicF2FS, magicZFS:
		return true
	}
	return false
}

// births reports whether the time of birth belongs to the inode for good. In
// overlayfs it changes when a file is copied up.
func (m magic) births() bool { return m != unix.OVERLAYFS_SUPER_MAGIC }

// linkMax is how many hard links a file can have. Where that is not known it is
// what POSIX has Linux promise.
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
