// This file is the duplicate request cache. A call that changes something and is
// retransmitted, because its reply was lost with a connection, gets the same reply again.
// The cache is bounded and divided by [origin.Share]: when it is full, the share with the
// most entries loses its oldest.
//
// Locking: replyCache.mu guards everything but answer.reply, which is written before
// answer.done is closed and read after it.

package folder

import (
	"container/list"
	"context"
	"crypto/sha256"
	"net"
	"sync"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
	"github.com/weft-rdma/weft/origin"
)

const (
	maxReplies  = 2048
	maxReply    = 1024 // octets of a reply that is kept; such procedures have shorter ones
	replyExpiry = 2 * time.Minute
)

// A request identifies a call. A client does not reuse an XID before its call has ended.
type request struct {
	peer string
	xid  uint32
}

// A replyCache holds calls in progress and calls that have been answered.
type replyCache struct {
	mu      sync.Mutex
	entries map[request]*answer
	order   list.List                   // of answers, the latest first
	shares  map[origin.Share]*list.List // the answers of each share, in the same order
}

// An answer is the reply to a call, or the promise of one.
type answer struct {
	request request
	share   origin.Share
	sum     [sha256.Size]byte // of procedure, credential and arguments
	session any
	element *list.Element // in order
	own     *list.Element // in its share's list
	since   time.Time
	done    chan struct{}
	reply   []byte // nil: none was kept
}

func newReplyCache() *replyCache {
	return &replyCache{entries: make(map[request]*answer), shares: make(map[origin.Share]*list.List)}
}

// peerOf identifies the client. Over RDMA its port does not matter, because the client
// does not choose it and it changes with each connection. Over TCP, clients that retransmit
// calls keep their port.
func peerOf(r *oncrpc.Request) string {
	if r.Remote == nil {
		return r.Network
	}
	addr := r.Remote.String()
	if host, _, err := net.SplitHostPort(addr); err == nil && r.Network == "rdma" {
		addr = host
	}
	return r.Network + " " + addr
}

// do answers r from the cache, or else by f.
func (c *replyCache) do(ctx context.Context, r *oncrpc.Request, f func() ([]byte, error)) ([]byte, error) {
	// Everything behind the XID, the msg_type and the version of RPC.
	sum := sha256.Sum256(r.Message[min(12, len(r.Message)):])
	a, first := c.begin(request{peerOf(r), r.XID}, originOf(r).Share(), sum, r.Session)
	if !first {
		return a.again(ctx, r)
	}
	var reply []byte
	defer func() { c.end(a, reply) }()
	b, err := f()
	if err == nil {
		reply = b
	}
	return b, err
}

// again answers r, a retransmission of the call. While the call is in progress, it gets no
// reply on the same connection, where that of the call will answer both; on another
// connection it waits for the call's reply.
func (a *answer) again(ctx context.Context, r *oncrpc.Request) ([]byte, error) {
	if !a.ended() {
		if a.session == r.Session {
			return nil, oncrpc.ErrNoReply
		}
		select {
		case <-a.done:
		case <-ctx.Done():
			return nil, oncrpc.ErrNoReply
		}
	}
	if a.reply == nil {
		return nil, oncrpc.ErrNoReply // no reply was kept; the client has to use a new XID
	}
	return append(r.Buffer(len(a.reply)), a.reply...), nil
}

func (a *answer) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// begin returns the answer of a call, and whether it is the first attempt, which has to be
// ended.
func (c *replyCache) begin(q request, share origin.Share, sum [sha256.Size]byte, session any) (a *answer, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	for e := c.order.Back(); e != nil && now.Sub(e.Value.(*answer).since) >= replyExpiry; e = c.order.Back() {
		c.drop(e.Value.(*answer))
	}
	if a := c.entries[q]; a != nil {
		if a.sum == sum {
			return a, false
		}
		c.drop(a)
	}
	if len(c.entries) >= maxReplies {
		c.drop(oldest(c.greatest(share)))
	}
	a = &answer{request: q, share: share, sum: sum, session: session, since: now, done: make(chan struct{})}
	own := c.shares[share]
	if own == nil {
		own = new(list.List)
		c.shares[share] = own
	}
	a.element, a.own = c.order.PushFront(a), own.PushFront(a)
	c.entries[q] = a
	return a, true
}

// greatest returns the list that loses an entry: that of the share which makes the call if
// it has more than its part, or else the longest.
func (c *replyCache) greatest(share origin.Share) *list.List {
	most := c.shares[share]
	if most != nil && most.Len() > maxReplies/len(c.shares) {
		return most
	}
	for _, l := range c.shares {
		if most == nil || l.Len() > most.Len() {
			most = l
		}
	}
	return most
}

// oldest returns the answer that a list loses: the oldest with a reply, because a call in
// progress would be executed twice if it were forgotten.
func oldest(l *list.List) *answer {
	for e := l.Back(); e != nil; e = e.Prev() {
		if a := e.Value.(*answer); a.reply != nil {
			return a
		}
	}
	return l.Back().Value.(*answer)
}

// end keeps the reply of a call. A call without one may be executed again.
func (c *replyCache) end(a *answer, reply []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(reply) > 0 && len(reply) <= maxReply {
		a.reply = append([]byte(nil), reply...)
	} else {
		c.drop(a)
	}
	close(a.done)
}

func (c *replyCache) drop(a *answer) {
	if c.entries[a.request] == a {
		delete(c.entries, a.request)
		c.order.Remove(a.element)
		own := c.shares[a.share]
		if own.Remove(a.own); own.Len() == 0 {
			delete(c.shares, a.share)
		}
	}
}
