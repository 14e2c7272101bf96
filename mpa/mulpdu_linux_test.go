package mpa

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Claims: MPA-2-1 MPA-5.1-1 MPA-5.1-3
func TestMULPDUComesFromTheSegmentSizeOfTheSocket(t *testing.T) {
	a, _ := tcpPair(t)
	rc, err := a.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	mss, nodelay := 0, 0
	c := NewConn(a, Params{})
	if err := rc.Control(func(fd uintptr) {
		mss, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_MAXSEG)
		nodelay, _ = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NODELAY)
	}); err != nil {
		t.Fatal(err)
	}
	if got := c.MULPDU(); mss == 0 || got != mulpduFor(mss, false) {
		t.Errorf("MULPDU %d, expected %d for a segment size of %d", got, mulpduFor(mss, false), mss)
	}
	if nodelay == 0 {
		t.Error("TCP_NODELAY is not set")
	}
}
