// This file polls for a start-up frame before somebody sleeps until it comes. On a short path
// that takes less than to be woken, and start-up waits twice.

package mpa

import (
	"net"
	"runtime"
	"time"

	"github.com/weft-rdma/weft/mpa/internal/socket"
	"github.com/weft-rdma/weft/mpa/internal/turns"
)

// startups are the odds that a start-up frame comes as soon as that.
var startups = turns.NewOdds()

// pollStartup returns when something is to be read from a TCP connection, or somewhat later
// than a short path would take. It does nothing where that has not paid lately.
func pollStartup(nc net.Conn) {
	c, ok := nc.(*net.TCPConn)
	if !ok || !startups.Due() {
		return
	}
	rc, err := c.SyscallConn()
	if err != nil {
		return // reading reports it
	}
	_ = rc.Control(func(fd uintptr) {
		alone := socket.Alone()
		startups.Note(pollUntil(time.Now().Add(turns.PollFor), func() bool { return socket.Readable(fd) }, alone))
	})
}

// pollUntil calls ready until it reports true, or it is late, and reports whether it was ready.
// Others run in between: in a program that has one processor, threads of others, too.
func pollUntil(late time.Time, ready func() bool, alone bool) bool {
	for !ready() {
		if !time.Now().Before(late) {
			return false
		}
		if alone {
			socket.Yield()
		}
		runtime.Gosched()
	}
	return true
}
