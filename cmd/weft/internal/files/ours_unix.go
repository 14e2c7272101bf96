//go:build unix

// This file checks the owner of a directory.

package files

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether a folder is this user's, and closed to others.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}
