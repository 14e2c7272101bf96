//go:build unix

// This file checks the owner of a directory.

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// onlyOurs reports whether a directory belongs to this user and is closed to others.
func onlyOurs(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}
