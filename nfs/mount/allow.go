// This file holds lists of networks whose hosts may use a server.

package mount

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// An Allow is a list of networks whose hosts may use a server. An empty list allows
// all hosts.
type Allow []netip.Prefix

// mappedBits is the length of ::ffff:0:0/96, the prefix of IPv4-mapped addresses (RFC
// 4291 §2.5.5.2).
const mappedBits = 96

// ParseAllow reads a network in CIDR notation, "192.0.2.0/24", or the address of
// a host. An IPv4-mapped IPv6 address stands for the IPv4 address.
func ParseAllow(s string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(s)
	if err != nil {
		return netip.Prefix{}, fmt.Errorf("%q is neither an address nor a network; expected 192.0.2.7, 192.0.2.0/24 or 2001:db8::/32, for example", s)
	}
	if p.Addr().Is4In6() {
		if p.Bits() < mappedBits {
			return netip.Prefix{}, fmt.Errorf("%q is wider than the IPv4-mapped addresses: expected ::ffff:0:0/%d or longer, or a network of IPv4", s, mappedBits)
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mappedBits)
	}
	return p.Masked(), nil
}

// Allows reports whether the host at a may use the server. If the list is not empty, a
// host without an IP address may not.
func (l Allow) Allows(a net.Addr) bool {
	if len(l) == 0 {
		return true
	}
	addr, ok := ipOf(a)
	return ok && l.has(addr)
}

// has reports whether the host at an IP address may use the server.
func (l Allow) has(a netip.Addr) bool {
	return len(l) == 0 || slices.ContainsFunc(l, func(p netip.Prefix) bool { return p.Contains(a) })
}

// ipOf is the IP address of a, without a zone.
func ipOf(a net.Addr) (netip.Addr, bool) {
	if a == nil {
		return netip.Addr{}, false
	}
	ap, err := netip.ParseAddrPort(a.String())
	return ap.Addr().Unmap().WithZone(""), err == nil
}
