package oncrpc

import (
	"bytes"
	"math"
	"testing"
)

func TestWhatCannotBeDecodedIsToldWithItsPlace(t *testing.T) {
	for _, c := range []struct {
		name   string
		wire   string // behind a word that is read before
		decode func(d *Decoder)
		kind   error
		offset int
		text   string
	}{
		{"integer cut off", "000000", func(d *Decoder) { d.Uint32() },
			ErrShort, 4, "unsigned integer of 4 octets, 3 octets are left"},
		{"hyper cut off", "00000000 000000", func(d *Decoder) { d.Int64() },
			ErrShort, 4, "unsigned hyper integer of 8 octets, 7 octets are left"},
		{"boolean 2", "00000002", func(d *Decoder) { d.Bool() },
			ErrValue, 4, "boolean is 0x2, expected 0 or 1"},
		{"fixed opaque cut off", "616263", func(d *Decoder) { d.Fixed(4) },
			ErrShort, 4, "fixed opaque of 4 octets, 3 octets are left"},
		{"fixed opaque without its roundup", "616263", func(d *Decoder) { d.Fixed(3) },
			ErrShort, 4, "fixed opaque of 3 octets, 3 octets are left"},
		{"fixed opaque of less than none", "616263", func(d *Decoder) { d.Fixed(-1) },
			ErrShort, 4, "fixed opaque of -1 octets, 3 octets are left"},
		{"opaque above its limit", "00000005 6162636465000000", func(d *Decoder) { d.Opaque(4) },
			ErrLimit, 4, "opaque of 5 octets, at most 4 are allowed"},
		{"opaque cut off", "00000005 61626364", func(d *Decoder) { d.Opaque(5) },
			ErrShort, 4, "opaque of 5 octets, 4 octets are left"},
		{"opaque without its roundup", "00000005 61626364650000", func(d *Decoder) { d.Opaque(5) },
			ErrShort, 4, "opaque of 5 octets, 7 octets are left"},
		{"opaque of 4 GiB less one", "ffffffff 61626364", func(d *Decoder) { d.Opaque(math.MaxUint32) },
			ErrShort, 4, "opaque of 4294967295 octets, 4 octets are left"},
		{"opaque of 2 GiB", "80000000 61626364", func(d *Decoder) { d.Opaque(math.MaxUint32) },
			ErrShort, 4, "opaque of 2147483648 octets, 4 octets are left"},
		{"string above its limit", "00000005 6162636465000000", func(d *Decoder) { d.String(4) },
			ErrLimit, 4, "string of 5 octets, at most 4 are allowed"},
		{"length above its limit", "00000005", func(d *Decoder) { d.Length(4) },
			ErrLimit, 4, "opaque of 5 octets, at most 4 are allowed"},
		{"array above its limit", "00000003 000000010000000200000003", func(d *Decoder) { d.Count(2, 4) },
			ErrLimit, 4, "array of 3 elements, at most 2 are allowed"},
		{"array longer than the rest", "00000003 0000000100000002000000", func(d *Decoder) { d.Count(3, 4) },
			ErrShort, 4, "array of 3 elements of at least 4 octets, 11 octets are left"},
		{"array of 2^32-1 empty elements", "ffffffff", func(d *Decoder) { d.Count(math.MaxUint32, 0) },
			ErrShort, 4, "array of 4294967295 elements of at least 4 octets, 0 octets are left"},
		{"octets left over", "00000000", func(d *Decoder) { d.End() },
			ErrTrailing, 4, "4 octets left over"},
		{"value that the caller refuses", "00000009", func(d *Decoder) { d.Fail(4, "stable_how %d", d.Uint32()) },
			ErrValue, 4, "stable_how 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := NewDecoder(unhex(t, "00000000"+c.wire), "thing")
			d.Uint32()
			c.decode(&d)
			err := d.Err()
			wantDecodeError(t, err, c.kind, c.offset)
			if want := "oncrpc: thing, at octet 4: " + c.text; err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}

			// The error sticks, and later results are empty.
			if d.Uint32() != 0 || d.Uint64() != 0 || d.Bool() || d.Optional() || d.Opaque(9) != nil || d.Fixed(1) != nil || d.Fixed(0) != nil ||
				d.String(9) != "" || d.Count(9, 4) != 0 || d.Length(9) != 0 || len(d.Rest()) != 0 || d.Left() != 0 || d.Pos() != c.offset {
				t.Error("something was decoded after the error")
			}
			d.Fail(0, "another")
			if d.Err() != err || d.End() != err {
				t.Errorf("then got %v", d.Err())
			}
		})
	}
}

func TestRoundupMayHaveAnyValue(t *testing.T) {
	d := NewDecoder(unhex(t, "00000001 61 ff5aa5 00000007"), "item")
	if p := d.Opaque(1); string(p) != "a" || d.Uint32() != 7 || d.End() != nil {
		t.Errorf("got %q, %v", p, d.End())
	}
}

func TestOpaqueDataArePartOfTheSliceAndEndWithTheirLast(t *testing.T) {
	b := unhex(t, "00000002 61620000 63640000 65666768")
	d := NewDecoder(b, "items")
	for i, p := range [][]byte{d.Opaque(2), d.Fixed(2), d.Rest()} {
		if &p[0] != &b[4+4*i] || cap(p) != len(p) {
			t.Errorf("item %d: %q with capacity %d", i, p, cap(p))
		}
	}
	if err := d.End(); err != nil {
		t.Error(err)
	}
}

func TestAListEndsWithTheSlice(t *testing.T) {
	b := bytes.Repeat(unhex(t, "00000001"), 1000) // there is always one more
	d := NewDecoder(b, "list")
	n := 0
	for d.Optional() {
		n++
	}
	if n != 1000 {
		t.Errorf("%d entries", n)
	}
	wantDecodeError(t, d.Err(), ErrShort, 4000)
}
