package oncrpc

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// wantDecodeError checks that err is a DecodeError of a kind, at an octet.
func wantDecodeError(t testing.TB, err, kind error, offset int) {
	t.Helper()
	var e *DecodeError
	if !errors.As(err, &e) || !errors.Is(err, kind) || e.Offset != offset {
		t.Errorf("got %v, want %v at octet %d", err, kind, offset)
	}
}

func TestRoundupGoesToTheNextMultipleOfFour(t *testing.T) {
	for n, want := range []int{0, 4, 4, 4, 4, 8, 8, 8, 8, 12} {
		if got := RoundUp(n); got != want || Padding(n) != want-n {
			t.Errorf("%d: %d and padding %d, want %d", n, got, Padding(n), want)
		}
	}
}

// Claims: P-3.7-1
func TestItemsHaveTheOctetsOfTheStandard(t *testing.T) {
	for _, c := range []struct {
		name   string
		wire   string
		encode func(e *Encoder)
		decode func(d *Decoder) bool
	}{
		{"unsigned integer", "fffefdfc",
			func(e *Encoder) { e.Uint32(0xfffefdfc) }, func(d *Decoder) bool { return d.Uint32() == 0xfffefdfc }},
		{"integer", "fffffffe",
			func(e *Encoder) { e.Int32(-2) }, func(d *Decoder) bool { return d.Int32() == -2 }},
		{"unsigned hyper", "0102030405060708",
			func(e *Encoder) { e.Uint64(0x0102030405060708) }, func(d *Decoder) bool { return d.Uint64() == 0x0102030405060708 }},
		{"hyper", "fffffffffffffffe",
			func(e *Encoder) { e.Int64(-2) }, func(d *Decoder) bool { return d.Int64() == -2 }},
		{"integers in a row", "00000001 00000002",
			func(e *Encoder) { copy(e.Extend(8), []byte{0, 0, 0, 1, 0, 0, 0, 2}) },
			func(d *Decoder) bool { return d.Uint32() == 1 && d.Uint32() == 2 }},
		{"booleans", "00000000 00000001",
			func(e *Encoder) { e.Bool(false); e.Bool(true) }, func(d *Decoder) bool { return !d.Bool() && d.Bool() }},
		{"optional data, there and absent", "00000001 00000007 00000000",
			func(e *Encoder) { e.Optional(true); e.Uint32(7); e.Optional(false) },
			func(d *Decoder) bool { return d.Optional() && d.Uint32() == 7 && !d.Optional() }},
		{"fixed opaque of 5", "6162636465 000000",
			func(e *Encoder) { e.Fixed([]byte("abcde")) }, func(d *Decoder) bool { return string(d.Fixed(5)) == "abcde" }},
		{"fixed opaque of 4", "61626364",
			func(e *Encoder) { e.Fixed([]byte("abcd")) }, func(d *Decoder) bool { return string(d.Fixed(4)) == "abcd" }},
		{"opaque of 5", "00000005 6162636465 000000",
			func(e *Encoder) { e.Opaque([]byte("abcde"), 5) }, func(d *Decoder) bool { return string(d.Opaque(5)) == "abcde" }},
		{"opaque of none", "00000000",
			func(e *Encoder) { e.Opaque(nil, 0) }, func(d *Decoder) bool { return len(d.Opaque(0)) == 0 }},
		{"string of 3, not UTF-8", "00000003 61ff63 00",
			func(e *Encoder) { e.String("a\xffc", 3) }, func(d *Decoder) bool { return d.String(3) == "a\xffc" }},
		{"array of 2", "00000002 00000008 00000009",
			func(e *Encoder) { e.Count(2, 2); e.Uint32(8); e.Uint32(9) },
			func(d *Decoder) bool { return d.Count(2, 4) == 2 && d.Uint32() == 8 && d.Uint32() == 9 }},
		{"opaque of 6 whose data travel elsewhere, and another item", "00000006 00000007",
			func(e *Encoder) { e.Length(6, 8); e.Uint32(7) },
			func(d *Decoder) bool { return d.Length(8) == 6 && d.Uint32() == 7 }},
		{"opaque of 6 whose data follow as a piece, their roundup", "00000006 0000",
			func(e *Encoder) { e.Length(6, 8); e.Pad(6) },
			func(d *Decoder) bool { return d.Length(8) == 6 && len(d.Rest()) == 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := unhex(t, c.wire)
			e := NewEncoder([]byte("before"))
			c.encode(&e)
			got, err := e.Finish()
			if err != nil || !bytes.Equal(got, append([]byte("before"), want...)) || e.Pos() != len(want) {
				t.Errorf("encoded % x at position %d, %v\nwant    % x", got, e.Pos(), err, want)
			}
			d := NewDecoder(want, "item")
			if !c.decode(&d) {
				t.Error("decoded another value")
			}
			if err := d.End(); err != nil || d.Pos() != len(want) {
				t.Errorf("position %d of %d: %v", d.Pos(), len(want), err)
			}
		})
	}
}

func TestWhatIsTooLongIsNotEncoded(t *testing.T) {
	for name, encode := range map[string]func(e *Encoder){
		"opaque":       func(e *Encoder) { e.Opaque(make([]byte, 5), 4) },
		"string":       func(e *Encoder) { e.String("abcde", 4) },
		"array":        func(e *Encoder) { e.Count(5, 4) },
		"length":       func(e *Encoder) { e.Length(5, 4) },
		"less than no": func(e *Encoder) { e.Count(-1, 0xffffffff) },
	} {
		e := NewEncoder([]byte("before"))
		e.Uint32(1)
		encode(&e)
		e.Fail("not the first error")
		e.Opaque(make([]byte, 100), 100)
		b, err := e.Finish()
		if !errors.Is(err, ErrLimit) || errors.Is(err, ErrValue) || string(b) != "before" {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}
