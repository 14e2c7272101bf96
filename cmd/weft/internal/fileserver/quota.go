// This file limits and counts how much of an export is used.

package fileserver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
)

// A Quota limits the use of an export; 0 is no limit.
//
// A connection counts from its first call for the export until it has ended; the calls of
// further connections are rejected. Bandwidth is of calls and replies together, in octets
// a second. What was not used may be used later, but for no more than a quarter of a second,
// or burst octets if that is more. Calls beyond it wait, each in the memory that its caller
// has at the server anyway.
type Quota struct {
	Connections int
	Bandwidth   int64
}

// burst is the least that may be sent at once, in octets: two of the longest calls.
const burst = 4 << 20

// errConnections: see Quota.
var errConnections = errors.New("the export has as many connections as its quota allows")

// A usage counts the use of an export, through all its changes.
type usage struct {
	calls, in, out, waited, refused atomic.Uint64

	pace atomic.Pointer[rate.Limiter] // nil is no limit

	mu       sync.Mutex
	most     int // connections; 0 is any number
	sessions map[any]struct{}
}

func newUsage() *usage { return &usage{sessions: make(map[any]struct{})} }

// limit sets the limits, for later calls. Connections that are beyond them stay.
func (u *usage) limit(q Quota) {
	if q.Bandwidth == 0 {
		u.pace.Store(nil)
	} else if p := u.pace.Load(); p == nil || p.Limit() != rate.Limit(q.Bandwidth) {
		u.pace.Store(rate.NewLimiter(rate.Limit(q.Bandwidth), max(burst, int(q.Bandwidth/4))))
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.most = q.Connections
}

// enter counts the connection of a call. It reports whether the quota has room for it.
func (u *usage) enter(r *oncrpc.Request) bool {
	if r.Session == nil || r.SessionEnd == nil {
		return true
	}
	session := r.Session
	u.mu.Lock()
	_, known := u.sessions[session]
	room := known || u.most == 0 || len(u.sessions) < u.most
	if room {
		u.sessions[session] = struct{}{}
	}
	u.mu.Unlock()
	if room && !known {
		r.SessionEnd(func() {
			u.mu.Lock()
			defer u.mu.Unlock()
			delete(u.sessions, session)
		})
	}
	return room
}

// meter returns a handler that counts the calls of h, and limits them. It tells refused of
// calls that it rejects.
func (u *usage) meter(h oncrpc.Handler, refused func(*oncrpc.Request, error)) oncrpc.Handler {
	return oncrpc.HandlerFunc(func(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
		if !u.enter(r) {
			u.refused.Add(1)
			refused(r, errConnections)
			return nil, &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthTooWeak, Err: errConnections}
		}
		u.calls.Add(1)
		u.in.Add(uint64(len(r.Message)))
		pace := u.pace.Load()
		promised := 0
		if pace != nil {
			promised = len(r.Message) + readCount(r)
			if err := u.wait(ctx, pace, promised); err != nil {
				return nil, oncrpc.ErrNoReply // the connection has ended
			}
		}
		reply, err := h.ServeRPC(ctx, r)
		u.out.Add(uint64(len(reply)))
		if pace != nil {
			later(pace, len(r.Message)+len(reply)-promised)
		}
		return reply, err
	})
}

// wait waits until n octets may be sent and received.
func (u *usage) wait(ctx context.Context, pace *rate.Limiter, n int) error {
	if pace.AllowN(time.Now(), min(n, pace.Burst())) {
		later(pace, n-pace.Burst())
		return nil
	}
	u.waited.Add(1)
	if err := pace.WaitN(ctx, min(n, pace.Burst())); err != nil {
		return err
	}
	later(pace, n-pace.Burst())
	return nil
}

// later has later calls wait for n octets more.
func later(pace *rate.Limiter, n int) {
	for ; n > 0; n -= pace.Burst() {
		pace.ReserveN(time.Now(), min(n, pace.Burst()))
	}
}

// readCount is how much a READ asks for, in octets; 0 for other calls.
func readCount(r *oncrpc.Request) int {
	if r.Proc != uint32(nfs.ProcRead) {
		return 0
	}
	var args nfs.ReadArgs
	d := oncrpc.NewDecoder(r.Args, "READ arguments")
	args.Decode(&d)
	if d.Err() != nil {
		return 0
	}
	return int(min(args.Count, burst)) // more than a reply can have
}
