//go:build !unix

// This file stands in for what only Unix knows of files.

package files

import (
	"io/fs"
	"os"
)

// addSystemInfo adds nothing here: the owner, the inode and the device of a file are Unix's.
func addSystemInfo(*Info, fs.FileInfo) {}

// Umask is the permissions that new files do not have.
func Umask() fs.FileMode { return 0o022 }

// setOwner does nothing: these systems have no numeric owners.
func setOwner(string, *Owner) (kept bool, err error) { return false, nil }

// setTimes sets times, of symbolic links none.
func setTimes(name string, m Meta) error {
	if m.Symlink {
		return nil
	}
	return os.Chtimes(name, m.Atime, m.Mtime)
}
