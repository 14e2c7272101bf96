package main

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/capture"
)

// This file is what connections are recorded in.

// openRecording begins the recording in the file of a name. Where another process has
// begun one there, as the parent or a child of this one, the number of this process is
// added to the name. The file is locked as long as this process runs.
func openRecording(name string) (*capture.Writer, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot record: %w", err)
	}
	if others(file) {
		_ = file.Close() // nothing was written
		if file, err = createOwn(fmt.Sprintf("%s.%d", name, os.Getpid())); err != nil {
			return nil, fmt.Errorf("cannot record: %w", err)
		}
		explain("another process records in %s, this one in %s", name, file.Name())
	}
	w, err := capture.NewWriter(file)
	if err != nil {
		return nil, fmt.Errorf("cannot record in %s: %w", file.Name(), err)
	}
	return w, nil
}

// createOwn creates a file of a name that others can guess, who may have put a link there.
func createOwn(name string) (*os.File, error) {
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
}

// others reports whether a regular file is used by another process or was.
func others(file *os.File) bool {
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return true
	}
	info, err = file.Stat() // it may have got longer before it was locked
	return err == nil && info.Size() > 0
}
