// This file makes and checks the data of messages.

package perf

import (
	"encoding/binary"
	"fmt"
)

// A pattern is a sequence of bytes that no other seed has at any offset (but
// by chance), so that data of another message or place is detected.

// word k of the pattern of seed (the finalizer of splitmix64).
func patternWord(seed, k uint64) uint64 {
	z := seed*0x9e3779b97f4a7c15 + k*0xd1342543de82ef95 + 1
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill writes the pattern of seed to b.
func fill(b []byte, seed uint64) {
	var k uint64
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, patternWord(seed, k))
		k++
	}
	var last [8]byte
	binary.LittleEndian.PutUint64(last[:], patternWord(seed, k))
	copy(b, last[:])
}

// check returns an error that names the first byte of b that is not the
// pattern of seed.
func check(b []byte, seed uint64) error {
	var word [8]byte
	for at := 0; at < len(b); at += 8 {
		binary.LittleEndian.PutUint64(word[:], patternWord(seed, uint64(at/8)))
		for i, got := range b[at:min(at+8, len(b))] {
			if got != word[i] {
				return fmt.Errorf("byte %d of %d is %#02x, expected %#02x", at+i, len(b), got, word[i])
			}
		}
	}
	return nil
}
