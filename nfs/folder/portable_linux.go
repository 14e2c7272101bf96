// This file gets attributes from Linux for the portable backend, which is tested there.

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
	st.key = key{dev: uint64(sys.Dev), ino: sys.Ino}
	st.NLink, st.UID, st.GID = uint32(sys.Nlink), sys.Uid, sys.Gid
	st.Used = uint64(sys.Blocks) * 512
	st.Atime = nfs.TimeOf(time.Unix(sys.Atim.Unix()))
	st.Ctime = nfs.TimeOf(time.Unix(sys.Ctim.Unix()))
	return nil
}
