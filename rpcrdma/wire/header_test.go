package wire_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weft-rdma/weft/rpcrdma/internal/worked"
	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Claims: P-3.1-1 P-3-3 P-3.3-4 P-3.3-6 P-3.4-21 P-3.4-23 P-3.4-24 P-4.1-1 P-4.1-4 P-4.1-8 P-4.1-9 P-4.1-10 P-4.1-11 P-4.1-12 P-4.1-13
// Claims: P-4.1-14 P-4.1-15 P-4.1-16 P-4.1-17 P-4.1-18 P-4.1-20 P-4.2-3 P-4.3-1 P-4.3-2 P-4.3-3 P-4.3-4 P-4.3-5 P-4.3-6 P-4.3-7 P-4.3-8
// Claims: P-4.3-9 P-4.3-10 P-4.3-11 P-4.3-12 P-4.3-13 P-4.3-14 P-4.3-15 P-4.3-16 P8166-4-1 P8166-4.1.2-1 P8166-4.2.2-1 P8166-4.2.4-1
// Claims: P8166-4.7-1 P8166-7-1
// Claims: P-3-1
func TestTheWorkedMessagesAreReadAndWrittenOctetForOctet(t *testing.T) {
	var reused wire.Header
	for _, v := range worked.Messages {
		t.Run(v.Name, func(t *testing.T) {
			header, payload := worked.Unhex(t, v.Header), worked.Unhex(t, v.Payload)
			message := slices.Concat(header, payload)
			if len(message) != v.Length {
				t.Fatalf("golden octets: %d, want %d", len(message), v.Length)
			}
			rest, err := reused.Parse(message, &v.Rules)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(v.Want, reused, worked.Parsed); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if !bytes.Equal(rest, payload) {
				t.Errorf("RPC message % x\nwant % x", rest, payload)
			}
			if dir := reused.Direction(rest, &wire.Rules{}); dir != v.Direction {
				t.Errorf("%v, want %v", dir, v.Direction)
			}
			check := reused.CheckReply
			if v.Direction == wire.DirectionCall {
				check = reused.CheckCall
			}
			if err := check(&v.Rules); err != nil {
				t.Error(err)
			}
			for name, h := range map[string]*wire.Header{"parsed": &reused, "made": &v.Want} {
				if got := h.Append([]byte("kept")); !bytes.Equal(got[4:], header) || string(got[:4]) != "kept" {
					t.Errorf("%s header: % x\nwant % x", name, got, header)
				}
				if got := h.Len(); got != len(header) {
					t.Errorf("%s header: length %d, want %d", name, got, len(header))
				}
			}
		})
	}
}

// Claims: P-4.1-14 P-4.1-20 P-4.2-5 P-4.3-12 P-4.3-14 P-4.3-15 P8166-4.1.2-1 P8166-4.5-4 P8166-4.5-5 P8166-4.5-6
func TestMessagesWithoutListsHaveTheirOwnEncoders(t *testing.T) {
	for _, c := range []struct {
		name string
		got  []byte
		want string
	}{
		{"M11", wire.AppendDone(nil, 0x5a5a0008, 32), "5a5a0008 00000001 00000020 00000003"},
		{"M12", wire.AppendErrVers(nil, 0x5a5a0009, 2, 64), "5a5a0009 00000002 00000040 00000004 00000001 00000001 00000001"},
		{"M13", wire.AppendErrChunk(nil, 0x5a5a000a, 64), "5a5a000a 00000001 00000040 00000004 00000002"},
	} {
		if want := worked.Unhex(t, c.want); !bytes.Equal(c.got, want) {
			t.Errorf("%s: % x, want % x", c.name, c.got, want)
		}
	}
}

// Claims: P-2-3 P-3.4-17 P-3.4-18 P8166-4-1
func TestAHeaderKeepsExtremeSegmentsExactly(t *testing.T) {
	want := wire.Header{
		XID: 1<<32 - 1, Version: 1, Credits: 1<<32 - 1, Proc: wire.ProcNoMsg,
		Reads:    []wire.ReadSegment{{1<<32 - 4, wire.Segment{1<<32 - 1, 1, 1<<64 - 1}}, {0, wire.Segment{0, 0, 1<<64 - 1}}},
		Writes:   []wire.WriteChunk{{}, {{1<<32 - 1, 0, 0}, {1, 1<<31 - 1, 1<<64 - 1<<31 + 1}}, {}},
		HasReply: true, Reply: wire.WriteChunk{},
	}
	var got wire.Header
	if _, err := got.Parse(want.Append(nil), &wire.Rules{Octets: 1<<31 - 1}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, worked.Parsed); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Claims: P-4.1-4 P8166-4.2.2-1
func TestEveryMessageButAnErrorGoesOutAsVersion1(t *testing.T) {
	for p := range wire.ProcError {
		h := wire.Header{Version: 7, Proc: p}
		if got := h.Append(nil)[7]; got != 1 {
			t.Errorf("%v: version %d, want 1", p, got)
		}
	}
}
