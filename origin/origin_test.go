package origin

import (
	"net"
	"net/netip"
	"testing"
)

func tcp(addr string) net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)) }

func TestAnOriginIsWhatTheAddressTells(t *testing.T) {
	for _, tt := range []struct {
		remote net.Addr
		addr   string
		local  bool
	}{
		{tcp("192.0.2.7:700"), "192.0.2.7:700", false},
		{tcp("[::ffff:192.0.2.7]:700"), "192.0.2.7:700", false},
		{tcp("[fe80::1%eth0]:700"), "[fe80::1]:700", false},
		{tcp("127.9.0.1:700"), "127.9.0.1:700", true},
		{tcp("[::ffff:127.0.0.1]:700"), "127.0.0.1:700", true},
		{tcp("[::1]:700"), "[::1]:700", true},
		{&net.UnixAddr{Name: "socket"}, "invalid AddrPort", false},
		{nil, "invalid AddrPort", false},
	} {
		if o := Of(tt.remote); o.Addr.String() != tt.addr || o.Local != tt.local || o.User != nil {
			t.Errorf("Of(%v) = %+v, want address %s, local %v", tt.remote, o, tt.addr, tt.local)
		}
	}
}

func TestSharesAreAddressesNetworksAndUsers(t *testing.T) {
	uid := func(n uint32) *Origin { return &Origin{Local: true, User: &User{UID: n}} }
	for _, tt := range []struct {
		a, b *Origin
		same bool
		a1   string
	}{
		{Of(tcp("192.0.2.7:1")), Of(tcp("[::ffff:192.0.2.7]:2")), true, "192.0.2.7"},
		{Of(tcp("192.0.2.7:1")), Of(tcp("192.0.2.8:1")), false, "192.0.2.7"},
		{Of(tcp("[2001:db8::1]:1")), Of(tcp("[2001:db8::ffff:2]:2")), true, "2001:db8::/64"},
		{Of(tcp("[2001:db8::1]:1")), Of(tcp("[2001:db8:0:1::1]:1")), false, "2001:db8::/64"},
		{uid(0), uid(0), true, "uid 0"},
		{uid(0), uid(1000), false, "uid 0"},
		{uid(0), Of(nil), false, "uid 0"},
		{Of(nil), Of(nil), true, "no address"},
	} {
		if same := tt.a.Share() == tt.b.Share(); same != tt.same || tt.a.Share().String() != tt.a1 {
			t.Errorf("%+v is of share %v, as %+v: %v, want %s, %v", tt.a, tt.a.Share(), tt.b, same, tt.a1, tt.same)
		}
	}
}
