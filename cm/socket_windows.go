// This file sets and reads the options of sockets on Windows.

package cm

import "golang.org/x/sys/windows"

var (
	sendBuffer    = bufferKind{"send buffer", windows.SO_SNDBUF, "the memory of the machine"}
	receiveBuffer = bufferKind{"receive buffer", windows.SO_RCVBUF, "the memory of the machine"}
)

func setBufferOption(fd uintptr, kind bufferKind, octets int) error {
	return windows.SetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, kind.option, octets)
}

func getBuffer(fd uintptr, kind bufferKind) (int, error) {
	return windows.GetsockoptInt(windows.Handle(fd), windows.SOL_SOCKET, kind.option)
}
