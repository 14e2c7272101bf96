//go:build !unix

// This file names the signal that ends a command, where there is only the interrupt.

package main

import "os"

// terminate is the polite request to end: the interrupt is the only one here.
var terminate = os.Interrupt

// reload is nil: there is no signal to ask a server to read its configuration again.
var reload os.Signal
