// The data: a pattern that differs from sample to sample and from octet to
// octet, so that a message missing, misplaced or stale is seen.

package main

import (
	"encoding/binary"
	"fmt"
)

// fillPattern fills buf with the pattern of seed (xorshift64*).
func fillPattern(buf []byte, seed uint64) {
	x := seed*0x9e3779b97f4a7c15 | 1
	var word [8]byte
	for len(buf) > 0 {
		x ^= x >> 12
		x ^= x << 25
		x ^= x >> 27
		binary.LittleEndian.PutUint64(word[:], x*0x2545f4914f6cdd1d)
		buf = buf[copy(buf, word[:]):]
	}
}

// checkPattern returns an error when buf is not the pattern of seed.
func checkPattern(buf []byte, seed uint64) error {
	want := make([]byte, len(buf))
	fillPattern(want, seed)
	for i := range buf {
		if buf[i] != want[i] {
			return fmt.Errorf("octet %d of %d is %#02x, should be %#02x: the data did not arrive as sent", i, len(buf), buf[i], want[i])
		}
	}
	return nil
}
