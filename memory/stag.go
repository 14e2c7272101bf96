// This file is the STag and its two parts.

package memory

import "fmt"

// An STag (Steering Tag) names registered memory to work requests and to
// peers (Verbs §7.2):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                 STag Index                    |   STag Key    |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// The RNIC chooses the index, at random and never 0; the consumer chooses the
// key. All 32 bits are compared at each access.
type STag uint32

const indexBits = 24

// Index returns the RNIC's part of the STag, 24 bits.
func (s STag) Index() uint32 { return uint32(s) >> 8 }

// Key returns the consumer's part of the STag.
func (s STag) Key() uint8 { return uint8(s) }

func (s STag) String() string { return fmt.Sprintf("0x%08x", uint32(s)) }

func makeSTag(index uint32, key uint8) STag { return STag(index<<8 | uint32(key)) }
