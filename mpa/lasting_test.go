// Negotiated terms and failures last as long as the stream.

package mpa

import (
	"net"
	"os"
	"testing"
)

// Claims: MPA-4.4-6
func TestCRCsAreCheckedToTheEndOfTheStream(t *testing.T) {
	lengths := make([]int, 400)
	for i := range lengths {
		lengths[i] = 1 + i*37%4000
	}
	p := Params{CRC: true}
	ulpdus, wire, ends := wireOf(p, lengths...)
	for _, bad := range []int{1, 7, 50, 399} {
		spoilt := append([]byte(nil), wire...)
		spoilt[ends[bad]-1] ^= 1
		s := &collector{}
		err := feed(&fed{wire: spoilt, portion: random(9000)}, p).Receive(s)
		if !hasCode(err, CodeCRC) || len(s.got) != bad {
			t.Errorf("frame %d of %d has a wrong CRC: %d were handed up, %v", bad, len(ulpdus), len(s.got), err)
		}
	}
}

// A lapse is a connection of which one write fails in part, and no other.
type lapse struct {
	net.Conn
	failed bool
	after  int // octets written since
}

func (l *lapse) Write(p []byte) (int, error) {
	if !l.failed {
		l.failed = true
		return 3, os.ErrDeadlineExceeded
	}
	l.after += len(p)
	return len(p), nil
}

// Part of a frame has left: whatever followed would be taken for the rest of it.
//
// Claims: DDP-3-9 DDP-3-10
func TestAfterAWriteHasFailedNothingMoreIsWritten(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	nc := &lapse{Conn: a}
	c := NewConn(nc, Params{Initiator: true})
	c.Append([]byte("first"), nil)
	_, first := c.Flush(true)
	if !hasCode(first, CodeClosed) {
		t.Fatalf("the write that failed: %v, expected code %d", first, CodeClosed)
	}
	c.Append([]byte("second"), nil)
	if drained, err := c.Flush(true); drained || err != first || nc.after != 0 {
		t.Errorf("then drained %t, %v, and %d octets were written; expected the same error and none", drained, err, nc.after)
	}
}
