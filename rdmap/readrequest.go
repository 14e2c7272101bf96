// This file is the codec of the RDMA Read Request header (RFC 5040 §4.4).

package rdmap

import (
	"encoding/binary"
	"fmt"
)

// ReadRequestLen is the length of the RDMA Read Request header in octets, and
// of the whole payload of a Read Request.
const ReadRequestLen = 28

// ReadRequest is the RDMA Read Request header (RFC 5040 §4.4, Figure 6):
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                     Data Sink STag (SinkSTag)                 |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	+                Data Sink Tagged Offset (SinkTO)               +
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                  RDMA Read Message Size (RDMARDSZ)            |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	|                   Data Source STag (SourceSTag)               |
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//	+              Data Source Tagged Offset (SourceTO)             +
//	+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// In octets: 0-3 SinkSTag, 4-11 SinkTO, 12-15 size, 16-19 SourceSTag, 20-27 SourceTO.
type ReadRequest struct {
	SinkSTag   uint32 // copied into the Read Response, uninterpreted
	SinkTO     uint64 // where the Read Response starts
	Size       uint32 // octets to read
	SourceSTag uint32
	SourceTO   uint64
}

// Append appends the header's 28 octets to dst.
func (r *ReadRequest) Append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint32(dst, r.SinkSTag)
	dst = binary.BigEndian.AppendUint64(dst, r.SinkTO)
	dst = binary.BigEndian.AppendUint32(dst, r.Size)
	dst = binary.BigEndian.AppendUint32(dst, r.SourceSTag)
	return binary.BigEndian.AppendUint64(dst, r.SourceTO)
}

// Parse reads the header from b, the payload of a Read Request. Any length but
// 28 octets is an [*Error], with r unchanged.
func (r *ReadRequest) Parse(b []byte) error {
	if len(b) != ReadRequestLen {
		return errLength(OpReadRequest, len(b), ReadRequestLen)
	}
	r.SinkSTag = binary.BigEndian.Uint32(b)
	r.SinkTO = binary.BigEndian.Uint64(b[4:])
	r.Size = binary.BigEndian.Uint32(b[12:])
	r.SourceSTag = binary.BigEndian.Uint32(b[16:])
	r.SourceTO = binary.BigEndian.Uint64(b[20:])
	return nil
}

// Advanced is the request as a Terminate reports it after the first sent of its
// octets have left: both offsets moved on, the size what is left
// (RFC 5040 §4.8).
func (r ReadRequest) Advanced(sent uint32) ReadRequest {
	r.SinkTO += uint64(sent)
	r.SourceTO += uint64(sent)
	r.Size -= sent
	return r
}

// words name the request in an error.
func (r *ReadRequest) words() string {
	return fmt.Sprintf("RDMA Read of %d octets at offset %#x of STag 0x%08x", r.Size, r.SourceTO, r.SourceSTag)
}
