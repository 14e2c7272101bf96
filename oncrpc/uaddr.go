// This file holds network identifiers and universal addresses: how RPC writes
// down where a program is served (RFC 5665).

package oncrpc

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Network identifiers: what carries the calls, over which version of IP
// (RFC 5665 §5.1.3; RFC 5666 §12 for RDMA).
const (
	NetidTCP   = "tcp"
	NetidTCP6  = "tcp6"
	NetidUDP   = "udp"
	NetidUDP6  = "udp6"
	NetidRDMA  = "rdma"
	NetidRDMA6 = "rdma6"
)

// NetidOf is the identifier of a network, "tcp", "udp" or "rdma", at an address
// of either version of IP; addresses of version 4 in such of version 6 count as
// version 4.
func NetidOf(network string, addr netip.Addr) string {
	network = strings.TrimRight(network, "46")
	if addr.Is6() && !addr.Is4In6() {
		return network + "6"
	}
	return network
}

// FormatUaddr writes a port's universal address: the IP address, then the port
// as two decimal octets, "192.0.2.1.8.1" for port 2049 (RFC 5665 §5.2.3.3 and
// §5.2.3.4). Zones, which mean nothing to others, are left out.
func FormatUaddr(a netip.AddrPort) string {
	return fmt.Sprintf("%v.%d.%d", a.Addr().Unmap().WithZone(""), a.Port()>>8, a.Port()&0xff)
}

// ParseUaddr reads a universal address.
func ParseUaddr(s string) (netip.AddrPort, error) {
	host, low, _ := cutLast(s)
	host, high, ok := cutLast(host)
	h, herr := strconv.ParseUint(high, 10, 8)
	l, lerr := strconv.ParseUint(low, 10, 8)
	addr, err := netip.ParseAddr(host)
	if !ok || herr != nil || lerr != nil || err != nil || addr.Zone() != "" {
		return netip.AddrPort{}, fmt.Errorf("oncrpc: %.80q is no universal address, which is an IP address and two octets of a port: 192.0.2.1.8.1", s)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(h<<8|l)), nil
}

// cutLast cuts s around its last dot.
func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '.')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}
