package main

import "unsafe"

// This file turns addresses of the program's memory into Go's types. The collector
// ignores such memory. Addresses that come as numbers, from structures in C, are
// turned into pointers here and nowhere else.

// pointer is the memory at an address.
func pointer(address uint64) unsafe.Pointer {
	p := uintptr(address)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// octets are those from an address on.
func octets(address, length uint64) []byte {
	return unsafe.Slice((*byte)(pointer(address)), length)
}
