package main

import (
	"syscall"
	"testing"
)

func TestNobodyWakesForEventsOfAnIdentifierThatIsGone(t *testing.T) {
	var ends [2]int
	if err := syscall.Pipe2(ends[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(ends[0])
	defer syscall.Close(ends[1])
	openChannel(ends[0], ends[1])
	defer closeChannel(ends[0])
	goes, stays := &identifier{channel: channels[ends[0]]}, &identifier{channel: channels[ends[0]]}
	goes.handle, stays.handle = identifiers.add(goes), identifiers.add(stays)
	cmMu.Lock()
	for _, id := range []*identifier{goes, stays, goes} {
		id.event(addrResolved, 0)
	}
	cmMu.Unlock()
	goes.destroy()
	if n, err := syscall.Read(ends[0], make([]byte, 8)); n != 1 || err != nil {
		t.Errorf("the channel is readable for %d events (%v), 1 is there", n, err)
	}
}
