package wire_test

import (
	"testing"

	"github.com/weft-rdma/weft/rpcrdma/wire"
)

// Claims: P-3.9-1 P-3.9-3 P-3.9-4 P-6.2-13
func TestPadsAlignDataFromTheFirstOctetOfTheSend(t *testing.T) {
	m10 := wire.Header{Proc: wire.ProcMsgP, Align: 256, Threshold: 512}
	p := m10.Padding()
	if p != (wire.Padding{Align: 256, Threshold: 512, Header: 36}) {
		t.Errorf("got %+v", p)
	}
	above := p
	above.Above = true
	for _, c := range []struct {
		name   string
		p      wire.Padding
		offset int
		count  uint32
		want   int
	}{
		{"M10's data at 132 of the Send", p, 96, 600, 124},
		{"at the threshold", p, 96, 512, 124},
		{"at the threshold, which is to be exceeded", above, 96, 512, 0},
		{"above the threshold, which is to be exceeded", above, 96, 513, 124},
		{"below the threshold", p, 96, 511, 0},
		{"aligned already", p, 220, 600, 0},
		{"after one octet too many", p, 221, 600, 255},
		{"alignment 0", wire.Padding{Align: 0, Header: 36}, 97, 600, 0},
		{"alignment 1", wire.Padding{Align: 1, Header: 36}, 97, 600, 0},
		{"alignment 64 KiB", wire.Padding{Align: wire.MaxAlign, Header: 36}, 96, 600, 65536 - 132},
		{"alignment that is no power of 2", wire.Padding{Align: 100, Header: 36}, 96, 600, 68},
	} {
		if got := c.p.Pad(c.offset, c.count); got != c.want {
			t.Errorf("%s: %d octets, want %d", c.name, got, c.want)
		}
	}
}

func TestAThresholdPadsTheLongestItemHoweverItIsRead(t *testing.T) {
	for _, c := range []struct {
		other, item uint32
		ok          bool
	}{{32, 600, true}, {598, 600, true}, {599, 600, false}, {600, 600, false}, {601, 600, false}, {0, 0, false}, {0, 1, false}, {0, 2, true}, {1<<32 - 1, 1<<32 - 1, false}} {
		threshold, ok := wire.MSGPThreshold(c.other, c.item)
		if ok != c.ok {
			t.Errorf("%d beside %d: %v, want %v", c.item, c.other, ok, c.ok)
		}
		for _, above := range []bool{false, true} {
			p := wire.Padding{Align: 64, Threshold: threshold, Header: 36, Above: above}
			if ok && (p.Pad(0, c.item) == 0 || p.Pad(0, c.other) != 0) {
				t.Errorf("%d beside %d by %+v: pads %d and %d", c.item, c.other, p, p.Pad(0, c.item), p.Pad(0, c.other))
			}
		}
	}
}
