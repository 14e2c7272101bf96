//go:build unix

package files

import (
	"io/fs"
	"syscall"
)

// addSystemInfo adds what only some systems tell of a file.
func addSystemInfo(i *Info, info fs.FileInfo) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		i.Links, i.UID, i.GID = uint32(st.Nlink), st.Uid, st.Gid
		i.Atime = accessTime(st)
	}
}
