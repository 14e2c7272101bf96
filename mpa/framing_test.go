// Frames for the tests, by the reference.

package mpa

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// encode is the FPDU of a ULPDU at stream position pos.
func encode(pos uint64, ulpdu []byte, markers, crc bool) []byte {
	return (&fpdutest.Stream{Markers: markers, CRC: crc, Pos: pos}).Send(ulpdu)
}

// endCodes are MPA's for the ends of the reference's streams; 0 is none.
var endCodes = map[fpdutest.End]Code{fpdutest.Cut: CodeClosed, fpdutest.Damaged: CodeCRC, fpdutest.Misaligned: CodeMarker}

// decode is what a Conn hands up of a stream.
func decode(wire []byte, markers, crc bool) ([][]byte, error) {
	var s collector
	err := feed(&fed{wire: bytes.Clone(wire)}, Params{RecvMarkers: markers, CRC: crc}).Receive(&s)
	if err == io.EOF {
		err = nil
	}
	return s.got, err
}

// putCRC makes the CRC of a frame hold.
func putCRC(f []byte) {
	at, sum := len(f)-4, fpdutest.NewCRC()
	for _, b := range f[:at] {
		sum.Add(b)
	}
	binary.LittleEndian.PutUint32(f[at:], sum.Sum())
}
