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
func pollStartup(nc net.Conn) { pollIfDue(nc, startups) }

func pollIfDue(nc net.Conn, odds *turns.Odds) {
	c, ok := nc.(*net.TCPConn)
	if !ok || !odds.Due() {
		return
	}
	rc, err := c.SyscallConn()
	if err != nil {
		return // reading reports it
	}
	_ = rc.Control(func(fd uintptr) {
		if socket.Readable(fd) {
			return // this says nothing about polling
		}
		yield := func() (ran bool) { return false }
		if socket.Alone() {
			yield = func() bool { return turns.YieldTo(socket.Yield) }
		}
		odds.Note(pollUntil(time.Now().Add(turns.PollFor), func() bool { return socket.Readable(fd) }, yield))
	})
}

// pollUntil calls ready until it reports true, or it is late (see [turns.MostPolls]), and
// reports whether that has paid: it was ready, and no other program ran in a yield.
func pollUntil(late time.Time, ready func() bool, yield func() (ran bool)) bool {
	shared := false
	for polls := 0; !ready(); polls++ {
		if polls >= turns.MostPolls || !time.Now().Before(late) {
			return false
		}
		shared = yield() || shared
		runtime.Gosched()
	}
	return !shared
}
