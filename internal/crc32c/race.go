//go:build race

// The race detector does not see the accesses of assembly, hash/crc32's included, so
// they are reported to it.

package crc32c

import (
	"runtime"
	"unsafe"
)

func raceRead(p []byte) { runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(p)), len(p)) }

func raceWrite(p []byte) { runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(p)), len(p)) }
