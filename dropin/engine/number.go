package main

import (
	"fmt"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// This file is the numbers of queue pairs in the rc persona. Programs give them to each
// other, and they have to be enough to find a queue pair: a number is a port of TCP,
// and an index below it. The port is this process's from the creation of the first
// queue pair on, by a socket that is bound and never listens; who listens binds to the
// address of a GID as well.

const perPort = 256

// A numberedPort is a port with the queue pairs that are named by it.
type numberedPort struct {
	port   uint16
	socket int // that reserves it
	next   uint8
	used   int
	pairs  [perPort]*queuePair
}

var ports struct {
	mu  sync.Mutex
	all []*numberedPort
}

// newNumber gives a queue pair a number. An index is not used again soon.
func newNumber(q *queuePair) (uint32, error) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	p, err := roomyPort()
	if err != nil {
		return 0, err
	}
	for p.pairs[p.next] != nil {
		p.next++
	}
	index := p.next
	p.next++
	p.pairs[index] = q
	p.used++
	return uint32(p.port)<<8 | uint32(index), nil
}

// roomyPort is a port with a free index; needs ports.mu.
func roomyPort() (*numberedPort, error) {
	for _, p := range ports.all {
		if p.used < perPort {
			return p, nil
		}
	}
	socket, port, err := reservePort()
	if err != nil {
		return nil, fmt.Errorf("a port for the numbers of queue pairs: %w", err)
	}
	p := &numberedPort{port: port, socket: socket}
	ports.all = append(ports.all, p)
	return p, nil
}

// reservePort binds a socket to a port of all addresses.
func reservePort() (socket int, port uint16, err error) {
	at := netip.AddrPortFrom(netip.IPv6Unspecified(), 0)
	socket, err = unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil { // a machine without IPv6
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), 0)
		socket, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	} else {
		_ = unix.SetsockoptInt(socket, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0)
	}
	if err != nil {
		return 0, 0, err
	}
	keepFromChildren(socket)
	_, sa := sockaddr(at)
	if err := bindSocket(socket, at, sa); err != nil {
		_ = unix.Close(socket)
		return 0, 0, err
	}
	// Another process of this user that reserves has found the port taken: sharing comes
	// after binding.
	if err := shareReservation(socket); err != nil {
		_ = unix.Close(socket)
		return 0, 0, err
	}
	return socket, localOf(socket).Port(), nil
}

// shareReservation lets sockets of this user bind to the same port, and no other's: who
// listens at an address of this machine binds beside the reservation.
func shareReservation(socket int) error {
	return unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
}

// ofNumber is the queue pair of a number, or nil.
func ofNumber(number uint32) *queuePair {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for _, p := range ports.all {
		if uint32(p.port) == number>>8 {
			return p.pairs[number%perPort]
		}
	}
	return nil
}

func freeNumber(number uint32) {
	ports.mu.Lock()
	defer ports.mu.Unlock()
	for _, p := range ports.all {
		if uint32(p.port) == number>>8 && p.pairs[number%perPort] != nil {
			p.pairs[number%perPort] = nil
			p.used--
		}
	}
}
