//go:build unix

// This file is how a system with owners and modes tells whether a key is one's own.

package folder

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// foreign says what is wrong with a file that has another owner, or grants others one
// of these rights; "" is nothing.
func foreign(fi fs.FileInfo, rights fs.FileMode) string {
	if st, ok := fi.Sys().(*syscall.Stat_t); ok && int64(st.Uid) != int64(os.Geteuid()) {
		return fmt.Sprintf("it belongs to the user %d, not to %d, who serves", st.Uid, os.Geteuid())
	}
	if fi.Mode().Perm()&rights != 0 {
		return fmt.Sprintf("its mode is %#o", fi.Mode().Perm())
	}
	return ""
}
