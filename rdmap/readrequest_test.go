package rdmap

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
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

// Claims: R-4.4-1 R-4.4-7
func TestReadRequestHasTheOctetsOfTheFigure(t *testing.T) {
	for _, c := range []struct {
		request ReadRequest
		wire    string // sink STag, sink TO, size, source STag, source TO
	}{
		{ReadRequest{0x11223344, 0x1000, 4096, 0x55667788, 0x20}, "11223344 0000000000001000 00001000 55667788 0000000000000020"},
		{ReadRequest{}, "00000000 0000000000000000 00000000 00000000 0000000000000000"},
		{
			ReadRequest{0x01020304, 0x05060708090A0B0C, math.MaxUint32, 0x11121314, 0x15161718191A1B1C},
			"01020304 05060708090a0b0c ffffffff 11121314 15161718191a1b1c",
		},
	} {
		want := unhex(t, c.wire)
		if len(want) != ReadRequestLen {
			t.Fatalf("golden octets: %d", len(want))
		}
		if got := c.request.Append([]byte{0xAA}); !bytes.Equal(got[1:], want) || got[0] != 0xAA {
			t.Errorf("Append: % x, want % x", got, want)
		}
		var r ReadRequest
		if err := r.Parse(want); err != nil || r != c.request {
			t.Errorf("Parse: %+v %v, want %+v", r, err, c.request)
		}
	}
}

// Claims: R-4.2-1
func TestReadRequestOfWrongSizeIsRefused(t *testing.T) {
	for _, n := range []int{0, 27, 29, 52} {
		r := ReadRequest{Size: 7}
		err := r.Parse(make([]byte, n))
		wantError(t, err, RemoteOperation, CodeUnspecified)
		if r != (ReadRequest{Size: 7}) {
			t.Errorf("%d octets changed the request to %+v", n, r)
		}
	}
}

// wantError fails the test unless err is an Error of that type and code.
func wantError(t *testing.T, err error, etype, code uint8) {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error", err)
	}
	if layer, et, c := e.TerminateCode(); layer != LayerRDMA || et != etype || c != code {
		t.Errorf("got %d/%d/%02x, want 0/%d/%02x: %v", layer, et, c, etype, code, err)
	}
}

// Claims: R-4.8-35 R-4.8-36
func TestAdvancedReadRequestTellsWhatIsLeft(t *testing.T) {
	r := ReadRequest{0x11223344, 0x1000, 4096, 0x55667788, 0x20}
	if got := r.Advanced(0); got != r {
		t.Errorf("before the first octet: %+v, want %+v", got, r)
	}
	if got, want := r.Advanced(2048), (ReadRequest{0x11223344, 0x1800, 2048, 0x55667788, 0x820}); got != want {
		t.Errorf("after 2048 octets: %+v, want %+v", got, want)
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add(make([]byte, ReadRequestLen))
	f.Add(bytes.Repeat([]byte{0xA5, 1}, 14))
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, b []byte) {
		var r ReadRequest
		err := r.Parse(b)
		if (err == nil) != (len(b) == ReadRequestLen) {
			t.Fatalf("%d octets: %v", len(b), err)
		}
		if err == nil && !bytes.Equal(r.Append(nil), b) {
			t.Fatalf("% x came back as % x", b, r.Append(nil))
		}
	})
}
