//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// openAtOnce opens a file for reading. It does not wait for the other end of a named pipe.
func openAtOnce(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// onlyOursToChange reports a configuration file that another user could have written, and so
// decide what is served, and to whom.
func onlyOursToChange(f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if st.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s: other users may change it (mode %04o): chmod go-w %s", f.Name(), st.Mode().Perm(), f.Name())
	}
	if sys, ok := st.Sys().(*syscall.Stat_t); ok && sys.Uid != 0 && int64(sys.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("%s: it belongs to another user (uid %d)", f.Name(), sys.Uid)
	}
	return nil
}
