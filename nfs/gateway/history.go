// This file remembers connections in front that have ended: their last calls, and the
// local port from which these were forwarded.

package gateway

import (
	"hash/maphash"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/fairness"
	"github.com/weft-rdma/weft/oncrpc"
)

const (
	// rememberFor is how long an ended connection is remembered. Servers keep replies
	// in their duplicate request caches no longer (Linux: two minutes).
	rememberFor = 5 * time.Minute
	// remembered is the number of connections that are remembered.
	remembered = 256
	// seenCalls is the number of calls that are remembered of a connection. It exceeds
	// the credits or slots of any client, which may retransmit all of them.
	seenCalls = 256
	// markedArgs is how many octets of the arguments the mark of a call covers. The
	// payload behind them does not matter.
	markedArgs = 512
)

// A mark is a hash that identifies a call. 0 stands for calls that are not remembered.
type mark uint64

var markSeed = maphash.MakeSeed()

// markOf returns the mark of a call. It does not cover the credential, which RPCSEC_GSS
// changes when it retransmits a call. NULL has no mark: it is the same for all clients,
// and may be executed twice.
func markOf(r *oncrpc.Request) mark {
	if r.Proc == 0 {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(markSeed)
	maphash.WriteComparable(&h, [...]uint32{r.XID, r.Prog, r.Vers, r.Proc})
	h.Write(r.Args[:min(len(r.Args), markedArgs)])
	return mark(max(1, h.Sum64()))
}

// A seen holds the last calls of a connection. Many goroutines may use it.
type seen struct {
	mu   sync.Mutex
	last []mark
	next int // the element to replace next, once last is full
}

func (s *seen) add(m mark) {
	if m == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.last) < seenCalls {
		s.last = append(s.last, m)
		return
	}
	s.last[s.next] = m
	s.next = (s.next + 1) % seenCalls
}

func (s *seen) has(m mark) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m != 0 && slices.Contains(s.last, m)
}

func (s *seen) all() []mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.last)
}

// A past is a connection that has ended.
type past struct {
	client string // see clientOf
	port   int    // local port from which its calls were forwarded
	calls  []mark
	ended  time.Time
}

// A history holds the connections that ended last. Many goroutines may use it.
type history struct {
	mu   sync.Mutex
	list []past // the oldest first
}

// put enters a connection that has ended.
func (h *history) put(client string, port int, calls []mark) {
	if port == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	if len(h.list) == remembered {
		i := fairness.OldestOfLargest(h.list, func(p past) string { return p.client })
		h.list = slices.Delete(h.list, i, i+1)
	}
	h.list = append(h.list, past{client, port, calls, time.Now()})
}

// take removes the ended connection over which a client sent a call before, and returns
// its local port, or 0 if there is none.
func (h *history) take(client string, m mark) int {
	if m == 0 {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	for i, p := range slices.Backward(h.list) {
		if p.client == client && slices.Contains(p.calls, m) {
			h.list = slices.Delete(h.list, i, i+1)
			return p.port
		}
	}
	return 0
}

// forget drops what has expired. h.mu is held.
func (h *history) forget() {
	old := 0
	for old < len(h.list) && time.Since(h.list[old].ended) > rememberFor {
		old++
	}
	h.list = slices.Delete(h.list, 0, old)
}

// hostOf is the address without the port, since clients use another port for each
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
