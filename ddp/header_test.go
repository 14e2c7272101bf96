package ddp

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// unhex turns annotated hex (blanks are free) into octets.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A tagged header is 14 octets: control, RsvdULP, STag and TO in network order.
//
// Claims: DDP-4.1-1 DDP-4.1-8 DDP-4.1-10 DDP-4.2-1 DDP-4.2-2
func TestTaggedHeaderHasTheOctetsOfTheFigure(t *testing.T) {
	for _, c := range []struct {
		name   string
		header Tagged
		wire   string
	}{
		{"last", Tagged{Last: true, Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}, "c1 40 00001234 0000000000001000"},
		{"not last", Tagged{Version: 1, RsvdULP: 0x42, STag: 0xDEADBEEF, TO: 0x0123456789ABCDEF}, "81 42 deadbeef 0123456789abcdef"},
		{"Consortium", Tagged{Last: true, STag: 0xFFFFFFFF, TO: 1<<64 - 1}, "c0 00 ffffffff ffffffffffffffff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.wire)
			if len(want) != TaggedLen {
				t.Fatalf("golden octets: %d, want %d", len(want), TaggedLen)
			}
			if got := c.header.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("Append: % x, want % x", got[6:], want)
			}
			var h Tagged
			if !h.Parse(append(want, "payload"...)) || h != c.header {
				t.Errorf("Parse: %+v, want %+v", h, c.header)
			}
		})
	}
}

// An untagged header is 18 octets: control, RsvdULP, QN, MSN and MO in network
// order.
//
// Claims: DDP-4.1-1 DDP-4.1-8 DDP-4.1-10 DDP-4.3-1
func TestUntaggedHeaderHasTheOctetsOfTheFigure(t *testing.T) {
	for _, c := range []struct {
		name   string
		header Untagged
		wire   string
	}{
		{"last", Untagged{Last: true, Version: 1, RsvdULP: [5]byte{0x43}, MSN: 1}, "41 43 00000000 00000000 00000001 00000000"},
		{
			"not last",
			Untagged{Version: 1, RsvdULP: [5]byte{0x44, 0xDE, 0xAD, 0xBE, 0xEF}, QN: 0x01020304, MSN: 0x05060708, MO: 0x090A0B0C},
			"01 44 deadbeef 01020304 05060708 090a0b0c",
		},
		{"Consortium", Untagged{Last: true, QN: 2, MSN: 1<<32 - 1, MO: 1<<32 - 1}, "40 00 00000000 00000002 ffffffff ffffffff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.wire)
			if len(want) != UntaggedLen {
				t.Fatalf("golden octets: %d, want %d", len(want), UntaggedLen)
			}
			if got := c.header.Append([]byte("before")); !bytes.Equal(got, append([]byte("before"), want...)) {
				t.Errorf("Append: % x, want % x", got[6:], want)
			}
			var h Untagged
			if !h.Parse(append(want, "payload"...)) || h != c.header {
				t.Errorf("Parse: %+v, want %+v", h, c.header)
			}
		})
	}
}

// Claims: DDP-4.1-1 DDP-4.1-8 DDP-4.1-9
func TestControlFieldKeepsReservedBitsZeroAndIgnoresThem(t *testing.T) {
	for version := range uint8(4) {
		for _, last := range []bool{false, true} {
			tagged := Tagged{Last: last, Version: version}
			untagged := Untagged{Last: last, Version: version}
			tw, uw := tagged.Append(nil), untagged.Append(nil)
			want := version
			if last {
				want |= 0x40
			}
			if tw[0] != want|0x80 || uw[0] != want {
				t.Errorf("control fields %#02x and %#02x, want %#02x and %#02x", tw[0], uw[0], want|0x80, want)
			}
			tw[0] |= 0x3C
			uw[0] |= 0x3C
			var th Tagged
			var uh Untagged
			if !th.Parse(tw) || th != tagged {
				t.Errorf("tagged with reserved bits set: %+v, want %+v", th, tagged)
			}
			if !uh.Parse(uw) || uh != untagged {
				t.Errorf("untagged with reserved bits set: %+v, want %+v", uh, untagged)
			}
		}
	}
}

// A version that does not fit its field cannot reach the bits beside it.
//
// Claims: DDP-4.1-8
func TestVersionStaysInItsField(t *testing.T) {
	tagged, untagged := Tagged{Version: 0xFD}, Untagged{Version: 0xFD}
	if got := tagged.Append(nil)[0]; got != 0x81 {
		t.Errorf("tagged control field %#02x, want 0x81", got)
	}
	if got := untagged.Append(nil)[0]; got != 0x01 {
		t.Errorf("untagged control field %#02x, want 0x01", got)
	}
}

// The wrong T bit or a missing octet is refused and leaves the header alone.
//
// Claims: DDP-4.2-1 DDP-4.3-1
func TestParseWantsTheWholeHeaderOfItsKind(t *testing.T) {
	tagged, untagged := Tagged{STag: 7}, Untagged{MSN: 7}
	tw, uw := tagged.Append(nil), untagged.Append(nil)
	for _, u := range [][]byte{nil, tw[:1], tw[:TaggedLen-1], append(uw, uw...)} {
		if h := (Tagged{STag: 9}); h.Parse(u) || h != (Tagged{STag: 9}) {
			t.Errorf("tagged Parse took % x: %+v", u, h)
		}
	}
	for _, u := range [][]byte{nil, uw[:1], uw[:UntaggedLen-1], append(tw, tw...)} {
		if h := (Untagged{MSN: 9}); h.Parse(u) || h != (Untagged{MSN: 9}) {
			t.Errorf("untagged Parse took % x: %+v", u, h)
		}
	}
}

func TestHeaderCodecAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, UntaggedLen)
	var tagged Tagged
	var untagged Untagged
	if n := testing.AllocsPerRun(100, func() {
		if !tagged.Parse(tagged.Append(buf)) || !untagged.Parse(untagged.Append(buf)) {
			t.Fatal("a header does not parse")
		}
	}); n != 0 {
		t.Errorf("%v allocations a header", n)
	}
}

func FuzzHeader(f *testing.F) {
	f.Add((&Tagged{Last: true, Version: 1, RsvdULP: 0x40, STag: 0x1234, TO: 0x1000}).Append(nil))
	f.Add((&Untagged{Last: true, Version: 1, RsvdULP: [5]byte{0x43}, MSN: 1}).Append(nil))
	f.Add([]byte{0xFF})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, u []byte) {
		var tagged Tagged
		var untagged Untagged
		isTagged, isUntagged := tagged.Parse(u), untagged.Parse(u)
		if isTagged && isUntagged {
			t.Fatalf("% x is both tagged and untagged", u)
		}
		var back []byte
		switch {
		case isTagged:
			back = tagged.Append(nil)
		case isUntagged:
			back = untagged.Append(nil)
		default:
			if len(u) >= UntaggedLen {
				t.Fatalf("% x is neither tagged nor untagged", u)
			}
			return
		}
		want := bytes.Clone(u[:HeaderLen(u)])
		want[0] &^= 0x3C
		if !bytes.Equal(back, want) {
			t.Fatalf("% x came back as % x", want, back)
		}
	})
}
