//go:build !unix

// Processor time is not measured here.

package main

import "time"

func cpuTime() time.Duration { return 0 }
