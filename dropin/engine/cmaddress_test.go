package main

import (
	"net/netip"
	"testing"
	"unsafe"
)

// TestAddressesAreReadAsTheyAreWritten in structures of the system's, of which the end of
// an IPv4 address is not looked at.
func TestAddressesAreReadAsTheyAreWritten(t *testing.T) {
	for _, text := range []string{"192.0.2.1:7174", "0.0.0.0:0", "[2001:db8::1]:65535", "[::]:1"} {
		want := netip.MustParseAddrPort(text)
		a := argument(bindIP)
		putAddress(&a.addr, want)
		if got := addressAt(unsafe.Pointer(&a.addr)); got != want {
			t.Errorf("%v, expected %v", got, want)
		}
	}
	a := argument(bindIP)
	putAddress(&a.addr, netip.AddrPort{})
	if got := addressAt(unsafe.Pointer(&a.addr)); got.IsValid() {
		t.Errorf("%v, expected none", got)
	}
	a.addr.sin6_family = 27 // AF_IB
	if got := addressAt(unsafe.Pointer(&a.addr)); got.IsValid() {
		t.Errorf("of another family: %v, expected none", got)
	}
}

func TestTheRouteToThisMachineIsItsOwn(t *testing.T) {
	got, err := route(netip.MustParseAddrPort("127.0.0.1:0"))
	if err != nil || got != loopback {
		t.Errorf("%v, %v", got, err)
	}
}

// FuzzAddress reads what a program may have left in a structure.
func FuzzAddress(f *testing.F) {
	f.Add(make([]byte, 28))
	f.Add([]byte{2, 0, 0x1C, 6, 127, 0, 0, 1})
	f.Add([]byte{10, 0, 0, 1, 0, 0, 0, 0, 0xFE, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		a := argument(bindIP)
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&a.addr)), 28), data)
		at := addressAt(unsafe.Pointer(&a.addr))
		again := argument(bindIP)
		putAddress(&again.addr, at)
		if back := addressAt(unsafe.Pointer(&again.addr)); back != at && !at.Addr().Is4In6() {
			t.Errorf("%v becomes %v", at, back)
		}
	})
}
