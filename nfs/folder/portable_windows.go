// This file gets attributes from Windows for the portable backend. Windows returns the
// number of a file for open files only.

package folder

import (
	"hash/fnv"
	"io/fs"
	"syscall"
	"time"

	"github.com/weft-rdma/weft/nfs"
)

func (v *portable) identify(name string, fi fs.FileInfo, st *info) error {
	sys, ok := fi.Sys().(*syscall.Win32FileAttributeData)
	if ok {
		st.Atime = nfs.TimeOf(time.Unix(0, sys.LastAccessTime.Nanoseconds()))
		st.key.gen = uint64(sys.CreationTime.Nanoseconds())
	}
	if fi.Mode()&fs.ModeType&^fs.ModeDir != 0 {
		// Opening would follow the link, so its name identifies it.
		h := fnv.New64a()
		h.Write([]byte(name))
		st.key.ino = h.Sum64()
		return nil
	}
	f, err := v.dir.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	var d syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(f.Fd()), &d); err != nil {
		return err
	}
	st.key.dev = uint64(d.VolumeSerialNumber)
	st.key.ino = uint64(d.FileIndexHigh)<<32 | uint64(d.FileIndexLow)
	st.NLink = d.NumberOfLinks
	return nil
}
