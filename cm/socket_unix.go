// This file sets and reads the options of sockets on Unix systems other than Linux.

//go:build unix && !linux

package cm

import "golang.org/x/sys/unix"

var (
	sendBuffer    = bufferKind{"send buffer", unix.SO_SNDBUF, "sysctl kern.ipc.maxsockbuf"}
	receiveBuffer = bufferKind{"receive buffer", unix.SO_RCVBUF, "sysctl kern.ipc.maxsockbuf"}
)

func setBufferOption(fd uintptr, kind bufferKind, octets int) error {
	return unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, kind.option, octets)
}

func getBuffer(fd uintptr, kind bufferKind) (int, error) {
	return unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, kind.option)
}
