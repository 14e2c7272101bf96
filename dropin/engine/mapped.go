package main

import (
	"bufio"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/memory"
	"github.com/weft-rdma/weft/verbs"
)

// This file finds out whether memory that is to be registered is there. A device pins its
// pages, which fails where nothing is mapped, and where memory to be written is read-only.
// Here nothing is pinned, and no page is touched or provided: what the process has mapped
// is looked up. Pages beyond the end of a file look mapped, too, so the last page of a
// mapping of a file is read. Those of devices pass.

// written are the rights by which memory is written (ib_umem_get takes a window's for one).
const written = verbs.LocalWrite | verbs.RemoteWrite | verbs.RemoteAtomic | verbs.BindWindow

// isThere reports whether memory of the program is mapped with what rights ask for. It is if
// the system does not say.
func isThere(b []byte, rights memory.Access) bool {
	if len(b) == 0 {
		return true
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return true
	}
	defer maps.Close()
	from := addressOf(b)
	return covered(bufio.NewScanner(maps), from, from+uint64(len(b)), rights&written != 0, isBacked)
}

// isBacked reports whether the page that an octet is in can be read. It is if the system
// cannot say (before Linux 5.14).
func isBacked(octet uint64) bool {
	size := uint64(os.Getpagesize())
	page := unsafe.Slice((*byte)(pointer(octet&^(size-1))), size)
	return unix.Madvise(page, unix.MADV_POPULATE_READ) != unix.EFAULT
}

// covered reports whether the lines of a file maps cover [from, to), in ascending order. Of
// mappings of files backed is asked about the last octet: what lies beyond the end of a
// file is the end of its mapping.
func covered(maps *bufio.Scanner, from, to uint64, write bool, backed func(octet uint64) bool) bool {
	for maps.Scan() {
		var begin, end, offset, inode uint64
		var may, device string
		if n, _ := fmt.Sscanf(maps.Text(), "%x-%x %s %x %s %d", &begin, &end, &may, &offset, &device, &inode); n < 3 || end <= from {
			continue
		}
		if begin > from || may[0] != 'r' || write && may[1] != 'w' {
			return false
		}
		if inode != 0 && !backed(min(end, to)-1) {
			return false
		}
		if from = end; from >= to {
			return true
		}
	}
	return maps.Err() != nil
}
