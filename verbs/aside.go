// This file is messages that are set aside until there is a receive for them
// (QPConfig.SetAside).

package verbs

import (
	"time"

	"github.com/weft-rdma/weft/rdmap"
)

var _ rdmap.LateReceiver = ulp{}

// LacksReceive reports that there is no receive for the message that has begun.
func (u ulp) LacksReceive() bool {
	ok, failed := u.rq.ready()
	return !ok && !failed && !u.refill()
}

// AwaitReceive waits until there may be one.
func (u ulp) AwaitReceive(since time.Time, stop <-chan struct{}) (ok, late bool) {
	if ok, late = u.rq.await(u.conn.Load(), since, stop); !ok {
		u.rq.stopWaiting()
	}
	return ok, late
}

// Unreceived ends the stream because of a message that was set aside.
func (u ulp) Unreceived(err error) {
	c := u.conn.Load()
	c.violated(err)
	c.stream.Kick()
}
