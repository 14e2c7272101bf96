// The CRC field of an FPDU (RFC 5044 §4.4): CRC32c as iSCSI's digests are
// computed, stored least significant octet first, over everything of the FPDU
// before it, markers included.

package fpdu

import (
	"encoding/binary"

	"github.com/weft-rdma/weft/internal/crc32c"
)

// CRCSize is the length of the CRC field, present whether CRC is used or not.
const CRCSize = 4

// updateCRC adds p to sum, the CRC of what comes before, 0 at first.
func updateCRC(sum uint32, p []byte) uint32 { return crc32c.Update(sum, p) }

// copyCRC copies p to dst and adds it to sum: once for each octet, so that dst
// and sum agree whatever happens to p meanwhile.
func copyCRC(sum uint32, dst, p []byte) uint32 { return crc32c.Copy(sum, dst, p) }

// storeCRC fills the CRC field.
func storeCRC(field []byte, sum uint32) { binary.LittleEndian.PutUint32(field, sum) }

// putCRC fills the last four octets of the frame f with the CRC of the rest,
// or with zeros when CRC is not in use: the field may then hold anything, and
// zeros tell nobody what was in the memory before.
func putCRC(f []byte, use bool) {
	at := len(f) - CRCSize
	var sum uint32
	if use {
		sum = updateCRC(0, f[:at])
	}
	storeCRC(f[at:], sum)
}

// crcHolds reports whether the last four octets of the frame f are the CRC of
// the rest.
func crcHolds(f []byte) bool {
	at := len(f) - CRCSize
	return updateCRC(0, f[:at]) == binary.LittleEndian.Uint32(f[at:])
}
