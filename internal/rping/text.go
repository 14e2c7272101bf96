// This file is the text of the pings.

package rping

import (
	"bytes"
	"strconv"
)

// Limits of the ping size in octets. MinSize is the length of the shortest text of the
// last possible ping, "rdma-ping-2147483647: " and its NUL.
const (
	MinSize     = 23
	MaxSize     = 64*1024 - 1
	DefaultSize = 64
)

// The letters of the text run from 'A' to 'z' and start again.
const (
	firstLetter = 'A'
	lastLetter  = 'z'
	letters     = lastLetter - firstLetter + 1
)

// Fill writes the text of ping number n (from 0) to buf, which has at least
// MinSize octets: its name, letters that start one later with each ping, and a NUL in
// the last octet.
func Fill(buf []byte, n int) {
	head := strconv.AppendInt(append(buf[:0], "rdma-ping-"...), int64(n), 10)
	head = append(head, ": "...)
	letter := n % letters
	for i := len(head); i < len(buf)-1; i++ {
		buf[i] = byte(firstLetter + letter)
		letter = (letter + 1) % letters
	}
	buf[len(buf)-1] = 0
}

// Text returns buf up to its first NUL, or all of it.
func Text(buf []byte) []byte {
	if i := bytes.IndexByte(buf, 0); i >= 0 {
		return buf[:i]
	}
	return buf
}
