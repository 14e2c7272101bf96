package rdmap

import (
	"bytes"
	"testing"
)

// Claims: X-6.2-1 X-6.3-5
func TestImmediateDataIsCarriedAsGiven(t *testing.T) {
	data := [ImmediateLen]byte{1, 2, 3, 4, 5, 6, 7, 8}
	want := unhex(t, "0102030405060708")
	if got := AppendImmediate(nil, data); !bytes.Equal(got, want) {
		t.Errorf("Append: % x, want % x", got, want)
	}
	if got, err := ParseImmediate(OpImmediate, want); err != nil || got != data {
		t.Errorf("Parse: % x %v, want % x", got, err, data)
	}
}

// Claims: X-4.2-1 X-6.3-7
func TestImmediateDataIsExactlyEightOctets(t *testing.T) {
	for _, n := range []int{0, 7, 9, 16} {
		data, err := ParseImmediate(OpImmediateSE, bytes.Repeat([]byte{1}, n))
		wantError(t, err, RemoteOperation, CodeUnspecified)
		if data != [ImmediateLen]byte{} {
			t.Errorf("%d octets gave % x", n, data)
		}
	}
}

func FuzzImmediate(f *testing.F) {
	f.Add([]byte("12345678"))
	f.Add([]byte("1234567"))
	f.Fuzz(func(t *testing.T, b []byte) {
		data, err := ParseImmediate(OpImmediate, b)
		if (err == nil) != (len(b) == ImmediateLen) {
			t.Fatalf("%d octets: %v", len(b), err)
		}
		if err == nil && !bytes.Equal(AppendImmediate(nil, data), b) {
			t.Fatalf("% x came back as % x", b, data)
		}
	})
}
