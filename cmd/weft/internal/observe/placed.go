// The connections of scrapers, and who makes room when there are too many.

package observe

import (
	"net"
	"slices"
	"sync"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/origin"
)

// limited is a listener with maxConnections. One more takes the place of the oldest of the
// host, or the user of this machine, that has the most: so nobody keeps others out.
type limited struct {
	net.Listener

	mu   sync.Mutex
	open []*placed // the oldest first
}

func (l *limited) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	from, _ := origin.Everybody(nc) // never fails
	c := &placed{Conn: nc, of: l, share: from.Share()}
	if victim := l.add(c); victim != nil {
		_ = victim.Close() // it fails only if it is closed
	}
	return c, nil
}

// add adds a connection, and returns the one that has to go, if any.
func (l *limited) add(c *placed) (victim *placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, c)
	if len(l.open) <= maxConnections {
		return nil
	}
	return l.open[fairness.OldestOfLargest(l.open, func(c *placed) origin.Share { return c.share })]
}

func (l *limited) remove(c *placed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.open, c); i >= 0 {
		l.open = slices.Delete(l.open, i, i+1)
	}
}

// placed frees its place when it is closed.
type placed struct {
	net.Conn
	of    *limited
	share origin.Share
}

// Close implements net.Conn.
func (c *placed) Close() error {
	c.of.remove(c)
	return c.Conn.Close()
}
