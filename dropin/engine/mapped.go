package main

import (
	"bufio"
	"bytes"
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
		m, ok := parseMapping(maps.Bytes())
		if !ok || m.end <= from {
			continue
		}
		if m.begin > from || !m.readable || write && !m.writable {
			return false
		}
		if m.file && !backed(min(m.end, to)-1) {
			return false
		}
		if from = m.end; from >= to {
			return true
		}
	}
	return maps.Err() != nil
}

// A mapping is a line of a file maps.
type mapping struct {
	begin, end         uint64
	readable, writable bool
	file               bool // of a file
}

// parseMapping reads a line: begin-end, rights, offset, device and inode of the file. fmt takes
// a hundred times as long, and programs register memory often.
func parseMapping(line []byte) (m mapping, ok bool) {
	var fields [5][]byte
	for i := range fields {
		line = bytes.TrimLeft(line, " ")
		fields[i], line, _ = bytes.Cut(line, []byte(" "))
	}
	begin, end, _ := bytes.Cut(fields[0], []byte("-"))
	var beginIs, endIs bool
	m.begin, beginIs = parseHex(begin)
	m.end, endIs = parseHex(end)
	rights, inode := fields[1], fields[4]
	if !beginIs || !endIs || len(rights) < 2 {
		return m, false
	}
	m.readable, m.writable = rights[0] == 'r', rights[1] == 'w'
	m.file = len(inode) > 0 && string(inode) != "0"
	return m, true
}

// parseHex reads a number of up to 16 digits.
func parseHex(digits []byte) (n uint64, ok bool) {
	for _, c := range digits {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, len(digits) > 0 && len(digits) <= 16
}
