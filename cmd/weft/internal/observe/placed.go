// A connection that holds a place.

package observe

import (
	"net"
	"sync"
)

// placed frees its place when it is closed.
type placed struct {
	net.Conn
	places chan struct{}
	once   sync.Once
}

func (c *placed) Close() error {
	c.once.Do(func() { <-c.places })
	return c.Conn.Close()
}
