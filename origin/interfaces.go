// The addresses of this machine's interfaces.

package origin

import (
	"net"
	"net/netip"
	"slices"
)

// onInterface reports whether an interface has the address now.
func onInterface(a netip.Addr) (bool, error) {
	if a.IsLoopback() {
		return true, nil // all of 127.0.0.0/8
	}
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all, func(n net.Addr) bool { return ipOf(n) == a.WithZone("") }), nil
}

// ipOf returns the address of an interface.
func ipOf(n net.Addr) (a netip.Addr) {
	switch n := n.(type) {
	case *net.IPNet:
		a, _ = netip.AddrFromSlice(n.IP)
	case *net.IPAddr:
		a, _ = netip.AddrFromSlice(n.IP)
	}
	return a.Unmap()
}
