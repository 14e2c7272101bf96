//go:build unix

package main

import "syscall"

// terminate is the polite request to end.
const terminate = syscall.SIGTERM
