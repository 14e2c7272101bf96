// This file is the message that advertises a buffer.

package rping

import (
	"encoding/binary"
	"fmt"
)

// InfoLen is the length of an advertisement in octets.
const InfoLen = 16

// An Info is rping's one message, the advertisement of a buffer. All fields
// are big-endian:
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                              Buf                              |
//	+                                                               +
//	|                                                               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                             RKey                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                             Size                              |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
type Info struct {
	Buf  uint64 // tagged offset of the buffer's first octet
	RKey uint32 // STag
	Size uint32 // octets
}

// AppendInfo appends the InfoLen octets of i to b.
func AppendInfo(b []byte, i Info) []byte {
	b = binary.BigEndian.AppendUint64(b, i.Buf)
	b = binary.BigEndian.AppendUint32(b, i.RKey)
	return binary.BigEndian.AppendUint32(b, i.Size)
}

// ParseInfo parses an advertisement, which has exactly InfoLen octets, as in the original.
func ParseInfo(b []byte) (Info, error) {
	if len(b) != InfoLen {
		return Info{}, fmt.Errorf("rping: message of %d octets, expected an advertisement of %d: the peer does not speak rping's protocol", len(b), InfoLen)
	}
	return Info{
		Buf:  binary.BigEndian.Uint64(b),
		RKey: binary.BigEndian.Uint32(b[8:]),
		Size: binary.BigEndian.Uint32(b[12:]),
	}, nil
}
