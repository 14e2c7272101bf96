// This file limits and counts how much of an export is used.

package fileserver

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/nfs"
	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

// A Quota limits the use of an export; 0 is no limit.
//
// A connection counts from its first call for the export until it has ended; the calls of
// further connections are rejected. ClientConnections is the same for each client: a host, or a
// user of this machine.
//
// Bandwidth is of calls and replies together, in octets a second. What was not used may be
// used later, but for no more than a quarter of a second. Calls beyond it wait: at most 5
// seconds, 8 of each connection, and all together in a share of an eighth of the memory for
// calls. More are answered by NFS3ERR_JUKEBOX, after which clients try again.
type Quota struct {
	Connections, ClientConnections int
	Bandwidth                      int64
}

// errConnections: see Quota.
var errConnections = errors.New("the export has as many connections as its quota allows")

// A usage counts the use of an export, through all its changes.
type usage struct {
	calls, in, out, busy, refused atomic.Uint64

	pace atomic.Pointer[pacer] // nil is no limit

	mu       sync.Mutex
	quota    Quota
	sessions map[any]struct{}
	clients  map[origin.Share]int // sessions of each
}

func newUsage() *usage {
	return &usage{sessions: make(map[any]struct{}), clients: make(map[origin.Share]int)}
}

// limit sets the limits, for later calls. Room is the memory for calls that wait, in octets.
// Connections that are beyond the limits stay.
func (u *usage) limit(q Quota, room int64) {
	if q.Bandwidth == 0 {
		u.pace.Store(nil)
	} else if p := u.pace.Load(); p == nil || p.rate != q.Bandwidth {
		u.pace.Store(newPacer(q.Bandwidth, room))
	} else {
		p.resize(room) // what was used before still counts
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.quota = q
}

// enter counts the connection of a call. It reports whether the quota has room for it.
func (u *usage) enter(r *oncrpc.Request) bool {
	if r.Session == nil || r.SessionEnd == nil {
		return true
	}
	session, client := r.Session, r.Origin.Share()
	known, room := u.add(session, client)
	if room && !known {
		r.SessionEnd(func() { u.remove(session, client) })
	}
	return room
}

// add counts a session. Known ones have room.
func (u *usage) add(session any, client origin.Share) (known, room bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, known = u.sessions[session]; known {
		return true, true
	}
	q := u.quota
	if q.Connections > 0 && len(u.sessions) >= q.Connections || q.ClientConnections > 0 && u.clients[client] >= q.ClientConnections {
		return false, false
	}
	u.sessions[session] = struct{}{}
	u.clients[client]++
	return false, true
}

func (u *usage) remove(session any, client origin.Share) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.sessions, session)
	if u.clients[client]--; u.clients[client] == 0 {
		delete(u.clients, client)
	}
}

// meter returns a handler that counts the calls of h, and limits them. Refused is called for
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
		reply, err := u.paced(ctx, r, h)
		u.out.Add(uint64(len(reply)))
		return reply, err
	})
}

// paced executes a call when the bandwidth allows it.
func (u *usage) paced(ctx context.Context, r *oncrpc.Request, h oncrpc.Handler) ([]byte, error) {
	pace := u.pace.Load()
	if pace == nil {
		return h.ServeRPC(ctx, r)
	}
	expected := len(r.Message) + mostResults(r)
	switch err := pace.admit(ctx, r.Session, expected); {
	case errors.Is(err, errBusy):
		u.busy.Add(1)
		return nfs.Fail(r, nfs.ErrJukebox)
	case err != nil:
		return nil, oncrpc.ErrNoReply // the connection has ended
	}
	reply, err := h.ServeRPC(ctx, r)
	pace.charge(len(r.Message) + len(reply) - expected)
	return reply, err
}

// mostResults is how much a READ or a listing asks for, in octets, as far as a server gives it;
// 0 for other calls, whose replies are short. A call counts as much before its reply is made, so
// that those that come together don't pass together.
func mostResults(r *oncrpc.Request) int {
	d := oncrpc.NewDecoder(r.Args, "arguments")
	most := 0
	switch nfs.Proc(r.Proc) {
	case nfs.ProcRead:
		var args nfs.ReadArgs
		args.Decode(&d)
		most = int(min(args.Count, nfs.MaxData))
	case nfs.ProcReaddir:
		var args nfs.ReaddirArgs
		args.Decode(&d)
		most = int(min(args.Count, nfs.MaxListing))
	case nfs.ProcReaddirplus:
		var args nfs.ReaddirplusArgs
		args.Decode(&d)
		most = int(min(args.MaxCount, nfs.MaxListing))
	}
	if d.Err() != nil {
		return 0
	}
	return most
}
