package mpa

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/weft-rdma/weft/internal/pages/pagestest"
)

// With the frame dropped that the system cannot read, the stream goes on.
func TestAWriteThatFaultsCostsTheFrameAlone(t *testing.T) {
	a, b := tcpPair(t)
	out, in := NewConn(a, Params{Initiator: true}), NewConn(b, Params{})
	bad := pagestest.Plain(t, 2)
	for i, payload := range [][]byte{pattern(9000, 1), bad, pattern(9000, 2)} {
		out.Append(pattern(18, i), [][]byte{payload})
	}
	pagestest.Protect(t, bad, unix.PROT_NONE)
	var fault *MemoryError
	for fault == nil {
		if drained, err := out.Flush(true); drained || err != nil && !errors.As(err, &fault) {
			t.Fatalf("drained %t, %v, expected a MemoryError", drained, err)
		}
	}
	if fault.Frame != 1 {
		t.Errorf("frame %d, expected 1", fault.Frame)
	}
	if left := out.Truncate(1); left != 1 {
		t.Fatalf("%d frames are left, expected 1", left)
	}
	out.Append(pattern(18, 9), nil)
	if _, err := flushAll(out); err != nil {
		t.Fatal(err)
	}
	out.CloseWrite()
	var s collector
	in.Receive(&s)
	if len(s.got) != 2 || len(s.got[0]) != 9018 || len(s.got[1]) != 18 {
		t.Errorf("%d ULPDUs came, expected the first and what followed", len(s.got))
	}
}
