//go:build unix

// This file names the signal that ends a command, beside the interrupt.

package main

import "syscall"

// terminate is the polite request to end.
const terminate = syscall.SIGTERM
