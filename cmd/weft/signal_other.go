//go:build !unix

package main

import "os"

// terminate is the polite request to end: the interrupt is the only one here.
var terminate = os.Interrupt
