// Two requests of netlink(7) and their replies: for a socket by its addresses
// (sock_diag(7)), and for the route to an address (rtnetlink(7)). Numbers are in the
// host's octet order, except ports and addresses.

package origin

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"syscall"
)

// The numbers of Linux's headers.
const (
	nlmsgHdrLen  = 16
	nlmsgError   = 2
	nlmFRequest  = 1
	afInet       = 2
	afInet6      = 10
	ipprotoTCP   = 6
	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	diagReqLen   = 56 // struct inet_diag_req_v2
	diagMsgLen   = 72 // struct inet_diag_msg
	rtmNewRoute  = 24
	rtmGetRoute  = 26
	rtmsgLen     = 12
	rtaDst       = 1
	rtnLocal     = 2
)

// begin returns the header of a message; finish sets its length.
func begin(order binary.AppendByteOrder, typ uint16, seq uint32) []byte {
	b := order.AppendUint32(nil, 0)
	b = order.AppendUint16(b, typ)
	b = order.AppendUint16(b, nlmFRequest)
	b = order.AppendUint32(b, seq)
	return order.AppendUint32(b, 0) // port of the sender: the kernel fills it in
}

func finish(order binary.ByteOrder, b []byte) []byte {
	order.PutUint32(b, uint32(len(b)))
	return b
}

// diagRequest returns the request for the socket with these addresses: struct
// inet_diag_req_v2.
func diagRequest(order byteOrder, seq uint32, from, to netip.AddrPort, iface uint32) []byte {
	b := begin(order, diagByFamily, seq)
	b = append(b, family(from.Addr()), ipprotoTCP, 0, 0)
	b = order.AppendUint32(b, 1<<32-1) // of any state
	b = binary.BigEndian.AppendUint16(b, from.Port())
	b = binary.BigEndian.AppendUint16(b, to.Port())
	for _, a := range []netip.Addr{from.Addr(), to.Addr()} {
		var field [16]byte
		copy(field[:], a.AsSlice())
		b = append(b, field[:]...)
	}
	b = order.AppendUint32(b, iface)
	b = order.AppendUint32(b, 1<<32-1) // INET_DIAG_NOCOOKIE, of two words
	b = order.AppendUint32(b, 1<<32-1)
	return finish(order, b)
}

// byteOrder reads and appends.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

func family(a netip.Addr) uint8 {
	if a.Is4() {
		return afInet
	}
	return afInet6
}

// payload returns the payload of the reply to request seq, which has to have the type
// typ. An error of the kernel is a [syscall.Errno].
func payload(order byteOrder, b []byte, seq uint32, typ uint16) ([]byte, error) {
	if len(b) < nlmsgHdrLen {
		return nil, fmt.Errorf("netlink: a message of %d octets, expected %d or more", len(b), nlmsgHdrLen)
	}
	size, got := order.Uint32(b), order.Uint16(b[4:])
	if size < nlmsgHdrLen || int64(size) > int64(len(b)) {
		return nil, fmt.Errorf("netlink: a message of %d octets with length %d in its header", len(b), size)
	}
	if n := order.Uint32(b[8:]); n != seq {
		return nil, fmt.Errorf("netlink: a reply to request %d, expected %d", n, seq)
	}
	body := b[nlmsgHdrLen:size]
	switch {
	case got == nlmsgError && len(body) >= 4:
		if e := -int32(order.Uint32(body)); e > 0 {
			return nil, syscall.Errno(e)
		}
		return nil, fmt.Errorf("netlink: an acknowledgement, expected a reply")
	case got != typ:
		return nil, fmt.Errorf("netlink: a message of type %d, expected %d", got, typ)
	}
	return body, nil
}

// parseDiag parses the reply to diagRequest: struct inet_diag_msg.
func parseDiag(order byteOrder, b []byte, seq uint32) (socket, error) {
	body, err := payload(order, b, seq, diagByFamily)
	if err != nil {
		return socket{}, err
	}
	if len(body) < diagMsgLen {
		return socket{}, fmt.Errorf("netlink: a socket of %d octets, expected %d", len(body), diagMsgLen)
	}
	address := func(at int) (a netip.Addr) {
		if body[0] == afInet {
			a, _ = netip.AddrFromSlice(body[at : at+4])
		} else {
			a, _ = netip.AddrFromSlice(body[at : at+16])
		}
		return a.Unmap() // an IPv6 socket may be connected over IPv4
	}
	return socket{
		state:  body[1],
		local:  netip.AddrPortFrom(address(8), binary.BigEndian.Uint16(body[4:])),
		remote: netip.AddrPortFrom(address(24), binary.BigEndian.Uint16(body[6:])),
		uid:    order.Uint32(body[64:]),
		inode:  uint64(order.Uint32(body[68:])),
	}, nil
}

// routeRequest returns the request for the route to an address: struct rtmsg with an
// attribute.
func routeRequest(order byteOrder, seq uint32, to netip.Addr) []byte {
	b := begin(order, rtmGetRoute, seq)
	b = append(b, family(to), uint8(to.BitLen()), 0, 0, 0, 0, 0, 0)
	b = order.AppendUint32(b, 0)
	b = order.AppendUint16(b, uint16(4+to.BitLen()/8))
	b = order.AppendUint16(b, rtaDst)
	b = append(b, to.AsSlice()...)
	return finish(order, b)
}

// parseRoute parses the reply to routeRequest: whether the kernel delivers to the address
// locally.
func parseRoute(order byteOrder, b []byte, seq uint32) (local bool, err error) {
	body, err := payload(order, b, seq, rtmNewRoute)
	if err != nil {
		return false, err
	}
	if len(body) < rtmsgLen {
		return false, fmt.Errorf("netlink: a route of %d octets, expected %d or more", len(body), rtmsgLen)
	}
	return body[7] == rtnLocal, nil
}
