package main

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// reserveIn reserves a port of a range; 0 leaves it to the system.
func reserveIn(first, last uint16) (socket int, port uint16, err error) {
	defer func(first, last uint16) { options.firstPort, options.lastPort = first, last }(options.firstPort, options.lastPort)
	options.firstPort, options.lastPort = first, last
	return reservePort()
}

func TestThePortOfNumbersIsOfTheRange(t *testing.T) {
	for range 10 { // another program may get the port while it is free
		socket, free, err := reserveIn(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, port, err := reserveIn(free, free); !errors.Is(err, unix.EADDRINUSE) {
			t.Fatalf("the one port of the range is taken, and there is %d, %v", port, err)
		}
		_ = unix.Close(socket)
		socket, port, err := reserveIn(free, free)
		if errors.Is(err, unix.EADDRINUSE) {
			continue
		}
		if err != nil || port != free {
			t.Errorf("port %d, %v; expected %d", port, err, free)
		}
		_ = unix.Close(socket)
		return
	}
	t.Error("of ten ports none was free again")
}
