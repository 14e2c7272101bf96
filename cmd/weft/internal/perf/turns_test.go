package perf

import (
	"bufio"
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/internal/nettest"
	"github.com/weft-rdma/weft/origin"
)

func shareOf(addr string) origin.Share {
	return origin.Of(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1))).Share()
}

func TestThoseWhoWaitAreDividedFairly(t *testing.T) {
	for _, tt := range []struct {
		waiting string // a letter for each, the oldest first
		own     string
		want    int
	}{
		{"aaaa", "b", 3},
		{"aaab", "b", 2},
		{"aabb", "b", -1},
		{"aaaa", "a", -1},
		{"abcd", "e", -1},
		{"abbbaa", "c", 5},
	} {
		shares := map[byte]origin.Share{'a': shareOf("192.0.2.1"), 'b': shareOf("192.0.2.2"), 'c': shareOf("192.0.2.3"), 'd': shareOf("192.0.2.4"), 'e': shareOf("192.0.2.5")}
		var all []*waiter
		for _, c := range []byte(tt.waiting) {
			all = append(all, &waiter{share: shares[c]})
		}
		if got := mostWaiting(all, shares[tt.own[0]]); got != tt.want {
			t.Errorf("%s, and one of %s: %d has to go, want %d", tt.waiting, tt.own, got, tt.want)
		}
	}
}

// Drivers that take their turn and do nothing with it, and any number that wait, do
// not keep one of another address waiting.
func TestWhoDoesNothingWithItsTurnLosesItToThoseWhoWait(t *testing.T) {
	addr, _ := servePeerWithin(t, nil, limits{open: time.Hour, idle: time.Hour, run: time.Hour, turn: time.Millisecond})
	hello := helloOf(protocol, tokenLen, 1, 9, 1)
	for range 2 * maxWaiting {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		nc, err := d.Dial("tcp4", addr)
		if err != nil && runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		if err != nil {
			t.Skipf("a system with 127.0.0.1 alone: %v", err)
		}
		t.Cleanup(func() { nc.Close() })
		if _, err := io.WriteString(nc, hello); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(nc).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	lines := bufio.NewReader(call(t, addr, hello))
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the turn did not come: %v", err)
		}
		if line == "{}\n" {
			return
		}
	}
}

// Connections that say nothing do not cost those of another address their places.
func TestTheSilentOfOneAddressEndOnlyEachOther(t *testing.T) {
	addr, _ := servePeerWithin(t, nil, limits{open: time.Hour, idle: time.Hour, run: time.Hour})
	honest := call(t, addr, "")
	for range 2 * maxOpening {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		nc, err := d.Dial("tcp4", addr)
		if err != nil && runtime.GOOS == "linux" {
			t.Fatal(err)
		}
		if err != nil {
			t.Skipf("a system with 127.0.0.1 alone: %v", err)
		}
		t.Cleanup(func() { nc.Close() })
	}
	if _, err := io.WriteString(honest, helloOf(protocol, tokenLen, 1, 9, 1)); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(honest).ReadString('\n'); err != nil || line != "{}\n" {
		t.Errorf("the peer said %q, %v", line, err)
	}
}

// All drivers on this machine have the places of one, whatever their addresses.
func TestAUserOfThisMachineIsOneOrigin(t *testing.T) {
	ln := nettest.Listen(t, "tcp4")
	dialed, err := net.Dial("tcp4", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer dialed.Close()
	nc, err := ln.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	user := &origin.Origin{Local: true, User: &origin.User{UID: 7}}
	p := &peer{
		cfg:     &PeerConfig{Admit: func(net.Conn) (*origin.Origin, error) { return user, nil }},
		opening: fairness.NewPlaces(1),
	}
	o := p.enter(t.Context(), nc)
	defer o.Evict(nil)
	if o.share != user.Share() {
		t.Errorf("the share is %v, want %v", o.share, user.Share())
	}
}
