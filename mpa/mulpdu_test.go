package mpa

import (
	"net"
	"testing"

	"github.com/weft-rdma/weft/mpa/internal/fpdu"
	"github.com/weft-rdma/weft/mpa/internal/socket"
)

// Claims: MPA-3-4 MPA-4.5-1 MPA-4.5-2 MPA-4.5-6 MPA-5.1-1 MPA-9.1-1
func TestMULPDUFollowsTheSegmentSize(t *testing.T) {
	for _, v := range []struct{ emss, plain, marked int }{
		{1, 128, 128},
		{64, 128, 128},
		{100, 128, 128},
		{140, 134, 130},
		{536, 530, 522},
		{1220, 1214, 1202},
		{1448, 1442, 1430},
		{1460, 1454, 1442},
		{8948, 8942, 8870},
		{8960, 8954, 8882},
		{32741, 32734, 32478},
		{65483, 64768, 64768},
		{1 << 30, 64768, 64768},
	} {
		if got := mulpduFor(v.emss, false); got != v.plain {
			t.Errorf("EMSS %d without markers: %d, expected %d", v.emss, got, v.plain)
		}
		if got := mulpduFor(v.emss, true); got != v.marked {
			t.Errorf("EMSS %d with markers: %d, expected %d", v.emss, got, v.marked)
		}
	}
}

// A frame of a ULPDU of MULPDU octets fits into one segment.
//
// Claims: MPA-4.5-1 MPA-4.5-2
func TestAFullFrameFitsIntoASegment(t *testing.T) {
	for emss := 160; emss < 9100; emss++ {
		for _, markers := range []bool{false, true} {
			n := mulpduFor(emss, markers)
			for pos := uint64(0); pos < 512; pos += 4 {
				if size := fpdu.Size(pos, n, markers); size > emss {
					t.Fatalf("EMSS %d, markers %t: the frame of %d octets at %d has %d", emss, markers, n, pos, size)
				}
			}
		}
	}
}

// Claims: MPA-3-2 MPA-5.1-2
func TestMULPDUIsThatOfTheConnection(t *testing.T) {
	pipe, peer := net.Pipe()
	defer pipe.Close()
	defer peer.Close()
	for _, v := range []struct {
		name string
		nc   net.Conn
		p    Params
		want int
	}{
		{"unknown segment size", pipe, Params{}, mulpduFor(defaultEMSS, false)},
		{"unknown, markers sent", pipe, Params{SendMarkers: true}, mulpduFor(defaultEMSS, true)},
		{"unknown, markers received", pipe, Params{RecvMarkers: true}, mulpduFor(defaultEMSS, false)},
		{"chosen", pipe, Params{MaxULPDU: 5000, SendMarkers: true}, 5000},
		{"chosen too small", pipe, Params{MaxULPDU: 1}, 128},
		{"chosen too large", pipe, Params{MaxULPDU: 1 << 20}, 64768},
	} {
		if got := NewConn(v.nc, v.p).MULPDU(); got != v.want {
			t.Errorf("%s: %d, expected %d", v.name, got, v.want)
		}
	}
	if defaultEMSS > 1460 {
		t.Errorf("the segment size taken when TCP does not tell is %d, expected at most 1460", defaultEMSS)
	}
}

// wrapped hides a TCP connection as a TLS connection does.
type wrapped struct{ net.Conn }

func (w wrapped) NetConn() net.Conn { return w.Conn }

// Claims: MPA-2-1 MPA-4.5-5 MPA-5.1-1 MPA-3-2
func TestMULPDUFollowsTCPWhileTheStreamGoesOn(t *testing.T) {
	a, _ := tcpPair(t)
	for _, nc := range []net.Conn{a, wrapped{a}} {
		c := NewConn(nc, Params{Initiator: true})
		if c.tcp == nil {
			t.Fatal("the TCP connection was not found")
		}
		asked := 0
		c.emss = socket.NewEMSS(func() (int, bool) { asked++; return 1000 * asked, true }, 0)
		c.batch.Pos = socket.AskSoonest - 1
		if got := c.MULPDU(); got != 994 || asked != 1 {
			t.Errorf("MULPDU %d after %d questions and %d octets, expected 994 after 1", got, asked, c.batch.Pos)
		}
		c.batch.Pos = socket.AskSoonest
		if got := c.MULPDU(); got != 1994 || asked != 2 {
			t.Errorf("MULPDU %d after %d questions, expected 1994 after 2", got, asked)
		}
		c.batch.Pos = 2 * socket.AskSoonest
		c.Append(make([]byte, 8), nil)
		if got := c.MULPDU(); got != 1994 {
			t.Errorf("MULPDU %d while a batch is gathered, expected it to stay 1994", got)
		}
		c.Truncate(0)
		if got := c.MULPDU(); got != 2994 {
			t.Errorf("MULPDU %d, expected 2994 from the new segment size", got)
		}
	}
}

// A segment size that stays is asked for ever less often, but never more than
// socket.AskLatest octets apart; one that changes is watched closely again.
//
// Claims: MPA-4.5-5
func TestASegmentSizeThatStaysIsAskedForLessOften(t *testing.T) {
	a, _ := tcpPair(t)
	c := NewConn(a, Params{Initiator: true})
	size, asked := 1000, 0
	c.emss = socket.NewEMSS(func() (int, bool) { asked++; return size, true }, 0)
	// next is how far the stream goes on, in steps, until TCP is asked.
	next := func() uint64 {
		from, before := c.batch.Pos, asked
		for asked == before && c.batch.Pos-from <= 2*socket.AskLatest {
			c.batch.Pos += socket.AskSoonest
			c.MULPDU()
		}
		return c.batch.Pos - from
	}
	for want := uint64(socket.AskSoonest); want < socket.AskLatest; want *= 2 {
		if got := next(); got != want {
			t.Fatalf("asked after %d octets, expected %d", got, want)
		}
	}
	for range 3 {
		if got := next(); got != socket.AskLatest {
			t.Fatalf("asked after %d octets, expected %d", got, socket.AskLatest)
		}
	}
	size = 500
	if got := next(); got != socket.AskLatest || c.MULPDU() != mulpduFor(size, false) {
		t.Fatalf("MULPDU %d after %d octets, expected %d after %d", c.MULPDU(), got, mulpduFor(size, false), socket.AskLatest)
	}
	if got := next(); got != socket.AskSoonest {
		t.Errorf("asked after %d octets, expected %d as the size has changed", got, socket.AskSoonest)
	}
}
