package rdmap

import "testing"

// Claims: R-4.1-1 R-4.1-2 R-4.1-8 R-4.1-10 R-4.1-11 X-4.1-2
// Claims: R-2.3-2
func TestControlFieldIsReadWithoutItsReservedBits(t *testing.T) {
	for octet := range 256 {
		version, op := ParseControl(uint8(octet))
		if want := uint8(octet) >> 6; version != want {
			t.Errorf("%#02x: version %d, want %d", octet, version, want)
		}
		if want := Opcode(octet & 0xF); op != want {
			t.Errorf("%#02x: opcode %d, want %d", octet, op, want)
		}
		if got, want := Control(version, op), uint8(octet)&^0x30; got != want {
			t.Errorf("%#02x came back as %#02x, want %#02x", octet, got, want)
		}
	}
}

// An opcode that does not fit its field cannot reach the bits beside it.
//
// Claims: R-4.1-9
func TestOpcodeStaysInItsField(t *testing.T) {
	if got := Control(VersionIETF, 0xF3); got != 0x43 {
		t.Errorf("control field %#02x, want 0x43", got)
	}
}

// The Invalidate STag goes out and comes in with the two messages that carry
// one; with all others it is zero when sent and ignored when received.
//
// Claims: R-4-1 R-4.1-1 R-4.1-4 R-4.1-12 R-4.1-13 R-4.7-1 X-4.1-3
func TestInvalidateSTagTravelsWithItsMessagesOnly(t *testing.T) {
	const stag = 0xDEADBEEF
	for _, row := range opcodeTable {
		want, wantSTag := [5]byte{row.octet}, uint32(0)
		if row.invalidate {
			want, wantSTag = [5]byte{row.octet, 0xDE, 0xAD, 0xBE, 0xEF}, stag
		}
		if got := ControlUntagged(VersionIETF, row.op, stag); got != want {
			t.Errorf("%s: RsvdULP % x, want % x", row.op, got, want)
		}
		version, op, got := ParseControlUntagged([5]byte{row.octet | 0x30, 0xDE, 0xAD, 0xBE, 0xEF})
		if version != VersionIETF || op != row.op || got != wantSTag {
			t.Errorf("%s: read as version %d, %s, STag %#x, want STag %#x", row.op, version, op, got, wantSTag)
		}
	}
}
