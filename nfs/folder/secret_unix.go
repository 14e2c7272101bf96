//go:build unix

// This file checks the owner and the mode of the key.

package folder

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// foreign returns what is wrong with a file that has another owner, or grants others any of
// the rights; "" if nothing is.
func foreign(fi fs.FileInfo, rights fs.FileMode) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int64(st.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("it belongs to user %d; the server runs as %d", st.Uid, os.Geteuid())
	}
	if fi.Mode().Perm()&rights != 0 {
		return fmt.Sprintf("its mode is %#o", fi.Mode().Perm())
	}
	return ""
}
