//go:build unix

package dropin

import (
	"io/fs"
	"os"
	"syscall"
)

// ownerOf returns the number of the user that a file belongs to.
func ownerOf(info fs.FileInfo) (int, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// ownGroup reports whether a file's group is the one that has this user's number, as many
// systems give each user.
func ownGroup(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Gid) == os.Geteuid()
}
