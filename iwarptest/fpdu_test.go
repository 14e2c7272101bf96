package iwarptest

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// octets reads annotated hex: blanks do not count.
func octets(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The hand-made peer has to be right itself: whole FPDUs whose CRCs were
// computed elsewhere, the last two from RFC 5044 figures 5 and 6.
func TestThePeerFramesAsTheStandardSays(t *testing.T) {
	for name, tt := range map[string]struct {
		framing Framing
		ulpdu   []byte
		fpdu    string
	}{
		"Send": {Framing{CRC: true}, Send(1, []byte("hello")...),
			"0017 4143 00000000 00000000 00000001 00000000 68656c6c6f 000000 b990b10c"},
		"Write": {Framing{CRC: true}, Write(0x1234, 0x1000, 1, 2, 3, 4),
			"0012 c140 00001234 0000000000001000 01020304 c747dc2c"},
		"Send with Invalidate": {Framing{CRC: true}, SendInvalidate(3, 0xdeadbeef, 'x'),
			"0013 4144 deadbeef 00000000 00000003 00000000 78 000000 a6dedaf0"},
		"Read Request": {Framing{CRC: true}, ReadRequest(1, Read{0x11223344, 0x1000, 4096, 0x55667788, 0x20}),
			"002e 4141 00000000 00000001 00000001 00000000 11223344 0000000000001000 00001000 55667788 0000000000000020 6aebd4a7"},
		"Read Response": {Framing{CRC: true}, ReadResponse(0, 0), "000e c142 00000000 0000000000000000 6975d6ca"},
		"FetchAdd": {Framing{CRC: true}, AtomicRequest(2, Atomic{ID: 7, STag: 0x55667788, TO: 0x40, Data: 1, CompareMask: 1<<64 - 1}),
			`0046 414a 00000000 00000001 00000002 00000000 00000000 00000007 55667788 0000000000000040
			 0000000000000001 0000000000000000 0000000000000000 ffffffffffffffff fad7fcb5`},
		"Atomic Response": {Framing{CRC: true}, AtomicResponse(1, 7, 41),
			"001e 414b 00000000 00000003 00000001 00000000 00000007 0000000000000029 b9ebafe8"},
		"Immediate Data": {Framing{CRC: true}, Immediate(2, 1, 2, 3, 4, 5, 6, 7, 8),
			"001a 4148 00000000 00000000 00000002 00000000 0102030405060708 a98a5e54"},
		"no CRC": {Framing{}, Send(1, 'x'), "0013 4143 00000000 00000000 00000001 00000000 78 000000 00000000"},
		"Terminate of a CRC error": {Framing{CRC: true}, Terminate(2, 0, 2, NoHeaders, nil),
			"0016 4147 00000000 00000002 00000001 00000000 20020000 7fe42585"},
		"marker before": {Framing{CRC: true, Markers: true}, Send(1, make([]byte, 24)...),
			"00000000 002a 4143 00000000 00000000 00000001 00000000 " + strings.Repeat("00", 24) + "52239983"},
		"marker inside": {Framing{CRC: true, Markers: true, pos: 492}, Send(2, make([]byte, 24)...),
			"002a 4143 00000000 00000000 00000002 00000000 00000014 " + strings.Repeat("00", 24) + "84925898"},
	} {
		t.Run(name, func(t *testing.T) {
			out, in := tt.framing, tt.framing
			got := out.appendFPDU(nil, tt.ulpdu)
			if want := octets(t, tt.fpdu); !bytes.Equal(got, want) {
				t.Fatalf("FPDU\n%x, expected\n%x", got, want)
			}
			back, err := in.readFPDU(bufio.NewReader(bytes.NewReader(got)))
			if err != nil || !bytes.Equal(back, tt.ulpdu) || in != out {
				t.Fatalf("read back: %x, %v, %+v", back, err, in)
			}
			got[len(got)-5] ^= 1 // pad or payload
			in = tt.framing
			if _, err := in.readFPDU(bufio.NewReader(bytes.NewReader(got))); err == nil && tt.framing.CRC {
				t.Error("a changed octet went unnoticed")
			}
		})
	}
}

// The Terminate for an invalid STag in a Read Request, from the same hand.
func TestThePeerExpectsTerminatesAsTheStandardSays(t *testing.T) {
	request := ReadRequest(1, Read{0x11223344, 0x1000, 4096, 0x55667788, 0x20})
	f := Framing{CRC: true}
	got := f.appendFPDU(nil, Terminate(0, 1, 0, ReadHeader, request))
	want := octets(t, "0046 4147 00000000 00000002 00000001 00000000 0100e000 002e"+hex.EncodeToString(request)+"93fa59be")
	if !bytes.Equal(got, want) {
		t.Fatalf("FPDU\n%x, expected\n%x", got, want)
	}
}

func TestThePeerCutsMessagesIntoSegmentsThatFit(t *testing.T) {
	segments := Split(Write(5, 0x1000, 1, 2, 3, 4, 5), 2)
	want := [][]byte{ClearLast(Write(5, 0x1000, 1, 2)), ClearLast(Write(5, 0x1002, 3, 4)), Write(5, 0x1004, 5)}
	if len(segments) != len(want) {
		t.Fatalf("%d segments, expected %d", len(segments), len(want))
	}
	for i := range want {
		if !bytes.Equal(segments[i], want[i]) {
			t.Errorf("segment %d: %x, expected %x", i, segments[i], want[i])
		}
	}
}
