package main

/*
#include "engine.h"
#include <arpa/inet.h>
#include <rdma/rdma_user_cm.h>
#include <sys/socket.h>
*/
import "C"

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// This file is addresses and routes: binding, and finding out by which of its own
// addresses this machine reaches another.

// addressAt is the address that a structure holds, one of IPv4 or of IPv6. The zero
// value is for a structure that holds none.
func addressAt(p unsafe.Pointer) netip.AddrPort {
	b := unsafe.Slice((*byte)(p), 28)
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port)
	case unix.AF_INET6:
		addr := netip.AddrFrom16([16]byte(b[8:24]))
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 && addr.IsLinkLocalUnicast() {
			addr = addr.WithZone(zone(scope))
		}
		return netip.AddrPortFrom(addr, port)
	}
	return netip.AddrPort{}
}

func zone(index uint32) string {
	if i, err := net.InterfaceByIndex(int(index)); err == nil {
		return i.Name
	}
	return ""
}

// putAddress is the reverse.
func putAddress(to *C.struct_sockaddr_in6, a netip.AddrPort) {
	b := unsafe.Slice((*byte)(unsafe.Pointer(to)), 28)
	clear(b)
	switch {
	case !a.IsValid():
		return
	case a.Addr().Is4():
		binary.NativeEndian.PutUint16(b, unix.AF_INET)
		copy(b[4:], a.Addr().AsSlice())
	default:
		binary.NativeEndian.PutUint16(b, unix.AF_INET6)
		copy(b[8:], a.Addr().AsSlice())
		if i, err := net.InterfaceByName(a.Addr().Zone()); err == nil {
			binary.NativeEndian.PutUint32(b[24:], uint32(i.Index))
		}
	}
	binary.BigEndian.PutUint16(b[2:], a.Port())
}

func bindIP(a *C.struct_rdma_ucm_bind_ip) syscall.Errno {
	return bindTo(a.id, unsafe.Pointer(&a.addr))
}

// bind is refused for addresses of AF_IB. librdmacm asks for one to find out what the
// kernel knows, and uses the older commands then.
func bind(a *C.struct_rdma_ucm_bind) syscall.Errno { return bindTo(a.id, unsafe.Pointer(&a.addr)) }

func bindTo(handle C.__u32, p unsafe.Pointer) syscall.Errno {
	id, errno := find(handle)
	if errno != 0 {
		return errno
	}
	at := addressAt(p)
	if !at.IsValid() {
		return syscall.EINVAL
	}
	return id.bind(at)
}

// bind binds a socket, so that the port is this identifier's from now on.
func (id *identifier) bind(at netip.AddrPort) syscall.Errno {
	family, sa := sockaddr(at)
	fd, err := newSocket(family)
	if err != nil {
		return errnoOf(err)
	}
	cmMu.Lock()
	only6 := id.only6
	cmMu.Unlock()
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1) // for ports of connections that have ended
	if family == unix.AF_INET6 {
		only := 0
		if only6 {
			only = 1
		}
		_ = unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, only)
	}
	if err := bindSocket(fd, at, sa); err != nil {
		_ = unix.Close(fd)
		return errnoOf(err)
	}
	bound := localOf(fd)
	cmMu.Lock()
	defer cmMu.Unlock()
	if id.socket > 0 {
		_ = unix.Close(fd)
		return syscall.EINVAL
	}
	id.socket, id.local = fd, bound
	return 0
}

// newSocket is a socket of TCP that does not block.
func newSocket(family int) (int, error) {
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err == nil {
		keepFromChildren(fd)
	}
	return fd, err
}

// bindSocket binds a socket, to a port of the user's range if any port will do.
func bindSocket(fd int, at netip.AddrPort, sa unix.Sockaddr) error {
	if at.Port() != 0 || options.firstPort == 0 {
		return unix.Bind(fd, sa)
	}
	err := error(unix.EADDRINUSE)
	for port := int(options.firstPort); port <= int(options.lastPort) && err == unix.EADDRINUSE; port++ {
		_, sa := sockaddr(netip.AddrPortFrom(at.Addr(), uint16(port)))
		err = unix.Bind(fd, sa)
	}
	return err
}

func sockaddr(a netip.AddrPort) (family int, sa unix.Sockaddr) {
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	sa6 := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if i, err := net.InterfaceByName(a.Addr().Zone()); err == nil {
		sa6.ZoneId = uint32(i.Index)
	}
	return unix.AF_INET6, sa6
}

// localOf is the address that a socket is bound to.
func localOf(fd int) netip.AddrPort {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}
	}
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		addr := netip.AddrFrom16(sa.Addr)
		if sa.ZoneId != 0 {
			addr = addr.WithZone(zone(sa.ZoneId))
		}
		return netip.AddrPortFrom(addr, uint16(sa.Port))
	}
	return netip.AddrPort{}
}

func resolveIP(a *C.struct_rdma_ucm_resolve_ip) syscall.Errno {
	return resolve(a.id, unsafe.Pointer(&a.src_addr), unsafe.Pointer(&a.dst_addr))
}

func resolveAddr(a *C.struct_rdma_ucm_resolve_addr) syscall.Errno {
	return resolve(a.id, unsafe.Pointer(&a.src_addr), unsafe.Pointer(&a.dst_addr))
}

func resolve(handle C.__u32, from, to unsafe.Pointer) syscall.Errno {
	id, errno := find(handle)
	if errno != 0 {
		return errno
	}
	source, peer := addressAt(from), addressAt(to)
	if !peer.IsValid() {
		return syscall.EINVAL
	}
	cmMu.Lock()
	bound := id.socket != 0
	cmMu.Unlock()
	if source.IsValid() && !bound && (source.Port() != 0 || !source.Addr().IsUnspecified()) {
		if errno := id.bind(source); errno != 0 {
			return errno
		}
	}
	local, err := route(peer)
	cmMu.Lock()
	defer cmMu.Unlock()
	id.peer = peer
	if err != nil {
		id.event(addrError, errnoOf(err))
		return 0
	}
	if !id.local.IsValid() || id.local.Addr().IsUnspecified() {
		id.local = netip.AddrPortFrom(local, id.local.Port())
	}
	id.event(addrResolved, 0)
	return 0
}

// route is the address of this machine from which it reaches another.
func route(peer netip.AddrPort) (netip.Addr, error) {
	family, sa := sockaddr(netip.AddrPortFrom(peer.Addr(), max(1, peer.Port())))
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return netip.Addr{}, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, sa); err != nil { // sends nothing
		return netip.Addr{}, err
	}
	return localOf(fd).Addr(), nil
}

func resolveRoute(a *C.struct_rdma_ucm_resolve_route) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	cmMu.Lock()
	defer cmMu.Unlock()
	id.event(routeResolved, 0)
	return 0
}

// queryRoute tells the device and the addresses. An identifier that is bound to no
// address in particular has no device yet.
func queryRoute(a *C.struct_rdma_ucm_query) syscall.Errno {
	id, errno := find(a.id)
	if errno != 0 {
		return errno
	}
	to := (*C.struct_rdma_ucm_query_route_resp)(pointer(uint64(a.response)))
	*to = C.struct_rdma_ucm_query_route_resp{}
	cmMu.Lock()
	local, peer := id.local, id.peer
	cmMu.Unlock()
	putAddress(&to.src_addr, local)
	putAddress(&to.dst_addr, peer)
	if local.IsValid() && !local.Addr().IsUnspecified() {
		to.node_guid, to.port_num, to.ibdev_index = C.__u64(guid), 1, 1
	}
	if rcPersona && peer.IsValid() && to.port_num != 0 {
		to.num_paths = 1
		path := &to.ib_route[0]
		s, d := local.Addr().As16(), peer.Addr().As16()
		for i := range s {
			path.sgid[i], path.dgid[i] = C.__u8(s[i]), C.__u8(d[i])
		}
		path.pkey, path.mtu, path.reversible, path.hop_limit = 0xffff, 5, 1, 64
	}
	return 0
}
