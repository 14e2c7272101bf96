// This file gets attributes from macOS for the portable backend.

package folder

import (
	"io/fs"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

func (v *portable) identify(name string, fi fs.FileInfo, st *info) error {
	sys, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return nfs.ErrNotSupp
	}
	st.key = key{dev: uint64(uint32(sys.Dev)), ino: sys.Ino, gen: uint64(sys.Birthtimespec.Nano())}
	st.NLink, st.UID, st.GID = uint32(sys.Nlink), sys.Uid, sys.Gid
	st.Used = uint64(sys.Blocks) * 512
	st.Atime = nfs.TimeOf(time.Unix(sys.Atimespec.Unix()))
	st.Ctime = nfs.TimeOf(time.Unix(sys.Ctimespec.Unix()))
	return nil
}
