//go:build unix

// This file names the signal that ends a command, beside the interrupt.

package main

import (
	"os"
	"syscall"
)

// terminate is the polite request to end.
const terminate = syscall.SIGTERM

// reload is the wish that a server reads its configuration again.
var reload os.Signal = syscall.SIGHUP
