//go:build race

package crc32c

// The race detector does not see what assembly does, hash/crc32's included. It
// is told.

import (
	"runtime"
	"unsafe"
)

func raceRead(p []byte) { runtime.RaceReadRange(unsafe.Pointer(unsafe.SliceData(p)), len(p)) }

func raceWrite(p []byte) { runtime.RaceWriteRange(unsafe.Pointer(unsafe.SliceData(p)), len(p)) }
