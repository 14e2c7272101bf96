package rping

import (
	"encoding/hex"
	"strings"
	"testing"
)

// unhex reads hex digits, leaving out blanks and what follows a '#'.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The octets are those of the original, seen on the wire between two Linux
// hosts.
func TestAdvertisementHasTheOctetsOfTheOriginal(t *testing.T) {
	golden := unhex(t, `
		00000055 2aac2be0  # address of the buffer
		0f405900           # STag
		00000040           # 64 octets`)
	want := Info{Buf: 0x552aac2be0, RKey: 0x0f405900, Size: 64}
	if got := AppendInfo([]byte("before"), want); string(got) != "before"+string(golden) {
		t.Errorf("AppendInfo = %x, want %x behind what was there", got, golden)
	}
	got, err := ParseInfo(golden)
	if err != nil || got != want {
		t.Errorf("ParseInfo = %+v, %v; want %+v", got, err, want)
	}
}

func TestMessagesOfAnotherLengthAreNotAdvertisements(t *testing.T) {
	for _, n := range []int{0, 1, 15, 17, 64} {
		if i, err := ParseInfo(make([]byte, n)); err == nil {
			t.Errorf("%d octets were taken for %+v", n, i)
		}
	}
}

func FuzzInfoSurvivesARoundTrip(f *testing.F) {
	f.Add(make([]byte, InfoLen))
	f.Add([]byte("0123456789abcdef"))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, b []byte) {
		i, err := ParseInfo(b)
		if (err == nil) != (len(b) == InfoLen) {
			t.Fatalf("%d octets: error %v", len(b), err)
		}
		if err == nil && string(AppendInfo(nil, i)) != string(b) {
			t.Fatalf("%x came back as %x", b, AppendInfo(nil, i))
		}
	})
}
