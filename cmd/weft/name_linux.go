// This file names the process.

package main

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/cmd/weft/internal/service"
)

// The kernel calls a process after the file that it executes. The confined one executes
// /proc/self/exe, so it would be called exe, and pgrep and pkill would not find it. Only init
// runs in the thread that has the name of the process.
func init() {
	if os.Getenv(service.ControlVariable) == "" {
		return
	}
	name := []byte("weft\x00")
	_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0) // it works without
}
