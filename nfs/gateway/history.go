// This file remembers connections in front that have ended: which calls came
// over them, and from which port these were passed on.

package gateway

import (
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// rememberFor is how long a connection is remembered: servers do not remember
	// the answers of repeated calls for longer (Linux: two minutes).
	rememberFor = 5 * time.Minute
	// remembered is how many connections are remembered.
	remembered = 256
	// seenXIDs is how many calls of a connection are remembered: more than the
	// credits or slots of any client, of which every call may be repeated.
	seenXIDs = 256
)

// An xids is the XIDs of the last calls of a connection. Many goroutines may use
// it.
type xids struct {
	mu   sync.Mutex
	last []uint32
	next int // in last, once it is full
}

func (x *xids) add(xid uint32) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.last) < seenXIDs {
		x.last = append(x.last, xid)
		return
	}
	x.last[x.next] = xid
	x.next = (x.next + 1) % seenXIDs
}

// all returns them when there will be no more.
func (x *xids) all() []uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.last
}

// A past is a connection that has ended.
type past struct {
	host  string // of the client
	port  int    // that its calls were passed on from
	xids  []uint32
	ended time.Time
}

// A history is the connections that ended last. Many goroutines may use it.
type history struct {
	mu   sync.Mutex
	list []past // the oldest first
}

// put notes a connection that has ended.
func (h *history) put(remote net.Addr, port int, xids []uint32) {
	if port == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	if len(h.list) == remembered {
		h.list = slices.Delete(h.list, 0, 1)
	}
	h.list = append(h.list, past{hostOf(remote), port, xids, time.Now()})
}

// take returns the port from which a call of the client's was passed on before,
// over a connection that has ended, and forgets that; 0 if there is none.
func (h *history) take(remote net.Addr, xid uint32) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	host := hostOf(remote)
	for i, p := range slices.Backward(h.list) {
		if p.host == host && slices.Contains(p.xids, xid) {
			h.list = slices.Delete(h.list, i, i+1)
			return p.port
		}
	}
	return 0
}

// forget drops what is too old. h.mu is held.
func (h *history) forget() {
	old := 0
	for old < len(h.list) && time.Since(h.list[old].ended) > rememberFor {
		old++
	}
	h.list = slices.Delete(h.list, 0, old)
}

// hostOf is the address without the port, which clients choose anew for each
// connection.
func hostOf(a net.Addr) string {
	if a == nil {
		return ""
	}
	if host, _, err := net.SplitHostPort(a.String()); err == nil {
		return host
	}
	return a.String()
}
