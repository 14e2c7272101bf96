package perf

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// slowDeadline is a connection whose deadlines take a second to be set.
type slowDeadline struct {
	net.Conn
	last time.Time
}

func (c *slowDeadline) SetDeadline(t time.Time) error {
	time.Sleep(time.Second)
	c.last = t
	return nil
}

// If the guard set its deadline after the release, it would undo the deadline set since,
// and the reply that reports the limit would be lost.
func TestAGuardThatIsReleasedSetsNoDeadlineAnyMore(t *testing.T) {
	for name, expired := range map[string]bool{"in time": false, "while the context ends": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				nc := new(slowDeadline)
				release := guard(ctx, nc)
				if expired {
					cancel()
					synctest.Wait()
				}
				release()
				nc.last = time.Unix(2, 0)
				release()
				cancel()
				time.Sleep(time.Minute)
				if nc.last != time.Unix(2, 0) {
					t.Errorf("the guard set the deadline %v after its release", nc.last)
				}
			})
		})
	}
}
