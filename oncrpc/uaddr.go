// This file holds network identifiers and universal addresses, by which RPC denotes
// where a program is served (RFC 5665).

package oncrpc

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Network identifiers: a transport over a version of IP (RFC 5665 §5.1.3; RFC 5666 §12
// for RDMA).
const (
	NetidTCP   = "tcp"
	NetidTCP6  = "tcp6"
	NetidUDP   = "udp"
	NetidUDP6  = "udp6"
	NetidRDMA  = "rdma"
	NetidRDMA6 = "rdma6"
)

// NetidOf is the identifier of the network "tcp", "udp" or "rdma" over the IP version
// of addr. An IPv4 address mapped into IPv6 counts as IPv4.
func NetidOf(network string, addr netip.Addr) string {
	network = strings.TrimRight(network, "46")
	if addr.Is6() && !addr.Is4In6() {
		return network + "6"
	}
	return network
}

// FormatUaddr returns the universal address of a: the IP address, then the port as two
// decimal octets, "192.0.2.1.8.1" for port 2049 (RFC 5665 §5.2.3.3 and §5.2.3.4). It
// leaves out a zone, which has no meaning on other hosts.
func FormatUaddr(a netip.AddrPort) string {
	return fmt.Sprintf("%v.%d.%d", a.Addr().Unmap().WithZone(""), a.Port()>>8, a.Port()&0xff)
}

// ParseUaddr parses a universal address.
func ParseUaddr(s string) (netip.AddrPort, error) {
	host, low, _ := cutLast(s)
	host, high, ok := cutLast(host)
	h, herr := strconv.ParseUint(high, 10, 8)
	l, lerr := strconv.ParseUint(low, 10, 8)
	addr, err := netip.ParseAddr(host)
	if !ok || herr != nil || lerr != nil || err != nil || addr.Zone() != "" {
		return netip.AddrPort{}, fmt.Errorf("oncrpc: %.80q is not a universal address; expected an IP address and two octets of a port, such as 192.0.2.1.8.1", s)
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
