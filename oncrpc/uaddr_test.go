package oncrpc

import (
	"net/netip"
	"testing"
)

// TestNetidsAndUniversalAddressesAreThoseOfTheRegistry pins the encoding (RFC 5665; RFC 5666
// §12).
//
// Claims: P-12-1 P-12-3 P8166-9-1
func TestNetidsAndUniversalAddressesAreThoseOfTheRegistry(t *testing.T) {
	if got := [...]string{NetidTCP, NetidTCP6, NetidUDP, NetidUDP6, NetidRDMA, NetidRDMA6}; got != [...]string{"tcp", "tcp6", "udp", "udp6", "rdma", "rdma6"} {
		t.Errorf("netids %q", got)
	}
	for _, c := range []struct {
		network, addr, netid, uaddr string
	}{
		{"tcp", "192.0.2.1:2049", "tcp", "192.0.2.1.8.1"},
		{"udp", "192.0.2.1:111", "udp", "192.0.2.1.0.111"},
		{"rdma", "192.0.2.1:20049", "rdma", "192.0.2.1.78.81"},
		{"tcp", "[2001:db8::1]:65535", "tcp6", "2001:db8::1.255.255"},
		{"udp6", "[::]:0", "udp6", "::.0.0"},
		{"rdma", "[fe80::1%eth0]:20049", "rdma6", "fe80::1.78.81"},
		{"tcp", "[::ffff:192.0.2.1]:2049", "tcp", "192.0.2.1.8.1"},
	} {
		addr := netip.MustParseAddrPort(c.addr)
		if got := NetidOf(c.network, addr.Addr()); got != c.netid {
			t.Errorf("%s over %s: netid %q, want %q", c.addr, c.network, got, c.netid)
		}
		if got := FormatUaddr(addr); got != c.uaddr {
			t.Errorf("%s: universal address %q, want %q", c.addr, got, c.uaddr)
		}
		want := netip.AddrPortFrom(addr.Addr().Unmap().WithZone(""), addr.Port())
		if got, err := ParseUaddr(c.uaddr); err != nil || got != want {
			t.Errorf("%q: address %v, %v, want %v", c.uaddr, got, err, want)
		}
	}
}

func TestWhatIsNoUniversalAddressIsRefused(t *testing.T) {
	for _, s := range []string{
		"", ".", "..", "1.2", "192.0.2.1", "192.0.2.8.1", "192.0.2.1.8", "192.0.2.1.8.256", "192.0.2.1.-1.1",
		"192.0.2.1.8.1.", "::1", "::1.8", "fe80::1%eth0.8.1", "host.8.1", "192.0.2.1.+8.1",
	} {
		if got, err := ParseUaddr(s); err == nil {
			t.Errorf("%q is read as %v", s, got)
		}
	}
}
