package wire_test

import (
	"bytes"
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Claims: P8797-4-1 P8797-4.2-1 P8797-4-4 P8797-8-1
func TestPrivateDataHasTheOctetsOfTheFigure(t *testing.T) {
	for _, c := range []struct {
		d    wire.PrivateData
		wire string // identifier, version, flags, send size, receive size
	}{
		{wire.PrivateData{true, 4096, 4096}, "f6ab0e18 01 01 03 03"},
		{wire.PrivateData{false, 1024, 262144}, "f6ab0e18 01 00 00 ff"},
		{wire.PrivateData{false, 65536, 2048}, "f6ab0e18 01 00 3f 01"},
	} {
		want := worked.Unhex(t, c.wire)
		if got := c.d.Append(nil); !bytes.Equal(got, want) || len(got) != wire.PrivateDataLen {
			t.Errorf("%+v: % x, want % x", c.d, got, want)
		}
		if got, found := wire.ParsePrivateData(want); !found || got != c.d {
			t.Errorf("% x: %+v, %v, want %+v", want, got, found, c.d)
		}
	}
}

// Claims: P8797-4.2-1
func TestSizesThatPrivateDataCannotTellAreBroughtWithin(t *testing.T) {
	for size, want := range map[uint32]uint32{0: 1024, 1023: 1024, 1025: 1024, 2047: 1024, 5000: 4096, 262143: 261120, 262145: 262144, 1<<32 - 1: 262144} {
		d, found := wire.ParsePrivateData(wire.PrivateData{false, size, size}.Append(nil))
		if !found || d.SendSize != want || d.ReceiveSize != want {
			t.Errorf("%d: %+v, want %d", size, d, want)
		}
	}
}

// Claims: P8797-4-5 P8797-5.1-1 P8797-5.2-1 P8797-5.2-2 P8797-5.2-3 P8797-6-1 P8797-7-1
func TestPrivateDataIsFoundAmongWhatIsOthers(t *testing.T) {
	want := wire.PrivateData{true, 4096, 8192}
	for _, c := range []struct {
		name, wire string
		found      bool
	}{
		{"alone", "f6ab0e18 01010307", true},
		{"with reserved bits set", "f6ab0e18 01ff0307", true},
		{"with octets after it", "f6ab0e18 01010307 aabbcc", true},
		{"after 4 octets", "00010002 f6ab0e18 01010307", true},
		{"after 5 octets", "00010002f6 f6ab0e18 01010307", true},
		{"after a beginning of it", "f6ab0e f6ab0e18 01010307", true},
		{"after one of version 2", "f6ab0e18 02010307 f6ab0e18 01010307", true},
		{"nothing", "", false},
		{"others' alone", "00010002 00030004 00050006", false},
		{"version 2", "f6ab0e18 02010307", false},
		{"version 0", "f6ab0e18 00010307", false},
		{"cut off", "f6ab0e18 010103", false},
		{"cut off after its identifier", "0000 f6ab0e18", false},
		{"little-endian", "180eabf6 01010307", false},
	} {
		want := want
		if !c.found {
			want = wire.PrivateData{false, 1024, 1024}
		}
		if got, found := wire.ParsePrivateData(worked.Unhex(t, c.wire)); found != c.found || got != want {
			t.Errorf("%s: %+v, %v, want %+v, %v", c.name, got, found, want, c.found)
		}
	}
}

// Claims: P8797-4.1-3
func TestRemoteInvalidationNeedsBothPeers(t *testing.T) {
	for _, own := range []bool{false, true} {
		for _, peer := range []bool{false, true} {
			got := wire.PrivateData{RemoteInvalidation: own}.Invalidates(wire.PrivateData{RemoteInvalidation: peer})
			if want := own && peer; got != want {
				t.Errorf("R %v and %v: %v, want %v", own, peer, got, want)
			}
		}
	}
}

func FuzzPrivateData(f *testing.F) {
	f.Add(worked.Unhex(f, "f6ab0e18 01010307"))
	f.Add(worked.Unhex(f, "00010002 f6ab0e18 02010307 f6ab0e18 01ff0307 00"))
	f.Add(worked.Unhex(f, "f6ab0e f6ab0e18 010103"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, found := wire.ParsePrivateData(b)
		if !found {
			if d != wire.DefaultPrivateData {
				t.Errorf("%+v, want the default", d)
			}
			return
		}
		sent := d.Append(nil)
		if again, ok := wire.ParsePrivateData(sent); !ok || again != d {
			t.Errorf("%+v, then %+v", d, again)
		}
		// What was found is in b, but for the reserved bits.
		if !bytes.Contains(b, sent[:5]) || !bytes.Contains(b, sent[6:]) {
			t.Errorf("% x is not in % x", sent, b)
		}
	})
}
