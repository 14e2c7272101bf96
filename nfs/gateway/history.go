// This file remembers connections in front that have ended: which calls came
// over them, and from which port these were passed on.

package gateway

import (
	"hash/maphash"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

const (
	// rememberFor is how long a connection is remembered: servers do not remember
	// the answers of repeated calls for longer (Linux: two minutes).
	rememberFor = 5 * time.Minute
	// remembered is how many connections are remembered.
	remembered = 256
	// seenCalls is how many calls of a connection are remembered: more than the
	// credits or slots of any client, of which every call may be repeated.
	seenCalls = 256
	// toldBy is by how many octets of arguments a call is told from others. A
	// payload behind them makes no difference.
	toldBy = 512
)

// A mark stands for a call: the same call has it again, and hardly any other. 0
// stands for calls that are not remembered.
type mark uint64

var markSeed = maphash.MakeSeed()

// markOf returns the mark of a call. Its credentials make no difference, which
// RPCSEC_GSS makes anew to repeat a call. NULL has no mark: that of one client is
// as that of another, and nothing comes of executing it twice.
func markOf(r *oncrpc.Request) mark {
	if r.Proc == 0 {
		return 0
	}
	var h maphash.Hash
	h.SetSeed(markSeed)
	maphash.WriteComparable(&h, [...]uint32{r.XID, r.Prog, r.Vers, r.Proc})
	h.Write(r.Args[:min(len(r.Args), toldBy)])
	return mark(max(1, h.Sum64()))
}

// A seen is the last calls of a connection. Many goroutines may use it.
type seen struct {
	mu   sync.Mutex
	last []mark
	next int // in last, once it is full
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
	port   int    // that its calls were passed on from
	calls  []mark
	ended  time.Time
}

// A history is the connections that ended last. Many goroutines may use it.
type history struct {
	mu   sync.Mutex
	list []past // the oldest first
}

// put notes a connection that has ended.
func (h *history) put(client string, port int, calls []mark) {
	if port == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget()
	if len(h.list) == remembered {
		i := h.most()
		h.list = slices.Delete(h.list, i, i+1)
	}
	h.list = append(h.list, past{client, port, calls, time.Now()})
}

// most returns the oldest of the client with the most: whose connections come and go
// has only its own forgotten. h.mu is held.
func (h *history) most() (oldest int) {
	count := make(map[string]int)
	for _, p := range h.list {
		count[p.client]++
	}
	for i, p := range h.list {
		if count[p.client] > count[h.list[oldest].client] {
			oldest = i
		}
	}
	return oldest
}

// take returns the port from which a call of the client's was passed on before,
// over a connection that has ended, and forgets that; 0 if there is none.
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
