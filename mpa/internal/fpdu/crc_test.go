package fpdu

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/weft-rdma/weft/mpa/internal/fpdu/fpdutest"
)

// The values are those of RFC 3720 appendix B.4, as they stand on the wire.
//
// Claims: MPA-4.4-10
func TestTheCRCIsThatOfISCSI(t *testing.T) {
	down := make([]byte, 32)
	for i := range down {
		down[i] = byte(31 - i)
	}
	readPDU := unhex(t, "01c00000 00000000 00000000 00000000 14000000 00000400 00000014 00000018 28000000 00000000 02000000 00000000")
	for _, v := range []struct {
		name string
		data []byte
		want string
	}{
		{"zeros", make([]byte, 32), "aa36918a"},
		{"ones", bytes.Repeat([]byte{0xff}, 32), "43aba862"},
		{"up", ramp(32), "4e79dd46"},
		{"down", down, "5cdb3f11"},
		{"digits", []byte("123456789"), "839206e3"},
		{"iSCSI Read PDU", readPDU, "563a96d9"},
	} {
		f := append(bytes.Clone(v.data), 1, 2, 3, 4)
		putCRC(f, true)
		if got := f[len(v.data):]; !bytes.Equal(got, unhex(t, v.want)) {
			t.Errorf("%s: %x, expected %s", v.name, got, v.want)
		}
		if !crcHolds(f) {
			t.Errorf("%s: the CRC does not hold", v.name)
		}
		if got := updateCRC(0, f); got != 0x48674BC7 {
			t.Errorf("%s: CRC over data and CRC is %08x, expected 48674bc7", v.name, got)
		}
		ref := fpdutest.NewCRC()
		for _, b := range v.data {
			ref.Add(b)
		}
		if got := binary.LittleEndian.Uint32(f[len(v.data):]); got != ref.Sum() {
			t.Errorf("%s: %08x, the reference has %08x", v.name, got, ref.Sum())
		}
	}
}

func TestWithoutCRCTheFieldIsZero(t *testing.T) {
	f := []byte{1, 2, 3, 4, 5, 6, 7, 8}
	putCRC(f, false)
	if want := []byte{1, 2, 3, 4, 0, 0, 0, 0}; !bytes.Equal(f, want) {
		t.Errorf("%x, expected %x", f, want)
	}
}
