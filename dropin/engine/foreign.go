package main

import (
	"math"
	"unsafe"
)

// This file turns addresses of the program's memory into Go's types. The collector
// ignores such memory. Addresses that come as numbers, from structures in C, are
// turned into pointers here and nowhere else.

// pointer is the memory at an address.
func pointer(address uint64) unsafe.Pointer {
	p := uintptr(address)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// octets are those from an address on. There are none at address 0, and none that go
// beyond the last address.
func octets(address, length uint64) (b []byte, ok bool) {
	if address == 0 || length > math.MaxInt || address+length < address {
		return nil, false
	}
	return unsafe.Slice((*byte)(pointer(address)), length), true
}

// addressOf is where octets are.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
