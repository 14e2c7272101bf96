// A limited amount of memory for messages.
//
//  1. An account acquires octets (TryAcquire, Acquire, Request, ForceAcquire). If they
//     are available and no request is queued, it has them at once.
//  2. Otherwise its request is queued. Whatever is released goes to the requests that
//     fit, in the order of next.
//  3. If a request has waited for Patience, a timer evicts those in its way (press). Their
//     memory comes back when their connections have ended.
//
// Locking: Memory.mu guards everything, the accounts too. Debtor.Stake is called with
// it, Debtor.Evict and the callbacks of Request without. A method that says that it unlocks
// mu does so last.

package fairness

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/origin"
)

// Patience is how long a peer may leave memory unused while others wait for it.
const Patience = 250 * time.Millisecond

// Up to Small octets a request is small, up to Tiny it is tiny; the others are large.
const (
	Small = 64<<10 + 4<<10
	Tiny  = 16 << 10
)

// spare returns how much a share may have, as a multiple of what is free. With large
// requests one share gets three quarters of the memory, and n shares 3/(1+3n) each, so
// that some is always free for one more. Small requests get nearer to the limit, and
// tiny ones up to it.
func spare(n int64) int64 {
	if n <= Small {
		return 16
	}
	return 3
}

// A Stake describes whom the memory of an account waits for.
type Stake struct {
	// Theirs is set while the peer has to act: to send the rest of a message, or to
	// receive what was sent to it. It has made no progress for Idle.
	Theirs bool
	Idle   time.Duration

	// Stuck is set while the account waits for more memory, and gives none back before.
	Stuck bool
}

// A Debtor is the connection behind an account. Its methods may be called by any
// goroutine.
type Debtor interface {
	// Stake is called with the memory locked: it must not wait.
	Stake() Stake

	// Evict ends the connection, which gives its memory back sooner or later. It must
	// not wait for the peer.
	Evict(why error) (gone bool)
}

// A Memory is a limited number of octets. Only a message that is longer than the limit
// exceeds it, when it is alone. Methods may be called by any goroutine.
type Memory struct {
	limit int64

	mu       sync.Mutex
	used     int64
	shares   map[origin.Share]*use
	accounts map[*Account]struct{}
	queue    []*Account // those that wait, the longest first
	pressing bool       // a timer will call press
}

// A use is what the accounts of a share hold.
type use struct {
	octets   int64
	accounts int
}

// Unlimited is a limit that is never reached.
const Unlimited = 1 << 56

// NewMemory returns a memory of limit octets.
func NewMemory(limit int64) *Memory {
	return &Memory{limit: limit, shares: make(map[origin.Share]*use), accounts: make(map[*Account]struct{})}
}

// An Account is what one connection holds of a memory. Methods may be called by any
// goroutine.
type Account struct {
	m       *Memory
	key     origin.Share
	share   *use
	most    int64 // octets
	debtor  Debtor
	octets  int64
	waiting []*request // oldest first: only the first can be granted
	evicted bool
	closed  bool
}

// Open opens an account of a share. It may hold most octets, or one message that is
// longer.
func (m *Memory) Open(share origin.Share, most int64, d Debtor) *Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.shares[share]
	if s == nil {
		s = new(use)
		m.shares[share] = s
	}
	s.accounts++
	a := &Account{m: m, key: share, share: s, most: most, debtor: d}
	m.accounts[a] = struct{}{}
	return a
}

// Close closes the account, once. What it holds may be given back later.
func (a *Account) Close() {
	m := a.m
	m.mu.Lock()
	defer m.mu.Unlock()
	a.closed = true
	delete(m.accounts, a)
	a.forget()
}

// forget drops the share when its last account is closed and empty. It needs mu.
func (a *Account) forget() {
	if !a.closed || a.octets > 0 {
		return
	}
	a.octets = 0
	if a.share.accounts--; a.share.accounts == 0 {
		delete(a.m.shares, a.key)
	}
}

// Limit returns the number of octets that there are.
func (m *Memory) Limit() int64 { return m.limit }

// Used returns the number of octets that accounts hold.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// A request waits for memory.
type request struct {
	a       *Account
	n       int64
	grows   bool // for a message that has memory already
	since   time.Time
	granted func() // called in a goroutine of its own
}

// fits reports whether a may have n more octets. It needs mu.
func (m *Memory) fits(a *Account, n int64, grows bool) bool {
	if m.used == 0 || grows && m.used == a.octets {
		return true // alone
	}
	if m.used+n > m.limit || a.octets > 0 && a.octets+n > a.most && !grows {
		return false
	}
	return n <= Tiny || a.share.octets+n <= spare(n)*(m.limit-m.used-n)
}

// add gives n octets to a. It needs mu.
func (a *Account) add(n int64) {
	a.octets += n
	a.share.octets += n
	a.m.used += n
}

// TryAcquire acquires n octets if they are available and no request is queued. grows is
// as for Acquire.
func (a *Account) TryAcquire(n int, grows bool) bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.try(int64(n), grows)
}

func (a *Account) try(n int64, grows bool) bool {
	if len(a.m.queue) > 0 || !a.m.fits(a, n, grows) {
		return false // the order among those that wait is next's to decide
	}
	a.add(n)
	return true
}

// ForceAcquire acquires n octets even beyond the limit.
func (a *Account) ForceAcquire(n int) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.add(int64(n))
}

// Acquire waits for n octets, or fails with the cause of the context's end. grows says
// that they are for a message of which a part has its memory already: then the account's
// own limit does not apply.
func (a *Account) Acquire(ctx context.Context, n int, grows bool) error {
	a.m.mu.Lock()
	if a.try(int64(n), grows) {
		a.m.mu.Unlock()
		return nil
	}
	there := make(chan struct{})
	cancel := a.enqueue(int64(n), grows, func() { close(there) })
	select {
	case <-there:
		return nil
	case <-ctx.Done():
		if cancel() {
			return context.Cause(ctx)
		}
		return nil // granted meanwhile
	}
}

// Request is Acquire without waiting: granted is called, in a goroutine of its own, when
// the account has the octets. cancel withdraws the request, and reports false if it was
// granted already.
func (a *Account) Request(n int, granted func()) (cancel func() bool) {
	a.m.mu.Lock()
	return a.enqueue(int64(n), false, granted)
}

// enqueue queues a request. It needs mu, which it unlocks.
func (a *Account) enqueue(n int64, grows bool, granted func()) (cancel func() bool) {
	m := a.m
	r := &request{a: a, n: n, grows: grows, since: time.Now(), granted: granted}
	a.waiting = append(a.waiting, r)
	if len(a.waiting) == 1 {
		m.queue = append(m.queue, a)
		m.grant()
	} else {
		m.mu.Unlock()
	}
	return func() bool {
		m.mu.Lock()
		i := slices.Index(a.waiting, r)
		if i >= 0 {
			a.dequeue(i)
		}
		m.grant()
		return i >= 0
	}
}

// dequeue removes a request. It needs mu.
func (a *Account) dequeue(i int) {
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if len(a.waiting) == 0 {
		at := slices.Index(a.m.queue, a)
		a.m.queue = slices.Delete(a.m.queue, at, at+1)
	}
}

// Release gives n octets back.
func (a *Account) Release(n int) {
	m := a.m
	m.mu.Lock()
	a.octets -= int64(n)
	a.share.octets -= int64(n)
	m.used -= int64(n)
	a.forget()
	if len(m.queue) == 0 {
		m.mu.Unlock()
		return
	}
	m.grant()
}

// grant grants the requests that fit, and starts the timer of press for the others. It
// needs mu, which it unlocks.
func (m *Memory) grant() {
	for r := m.next(); r != nil; r = m.next() {
		r.a.dequeue(0)
		r.a.add(r.n)
		go func() {
			defer panics.Recover()
			r.granted()
		}()
	}
	if len(m.queue) > 0 && !m.pressing {
		m.pressing = true
		time.AfterFunc(Patience, m.press)
	}
	m.mu.Unlock()
}

// next returns the request to grant next: of those that fit, that of the share, and then
// of the account, that would have least; nil if there is none. Only tiny ones overtake a
// request for which others are being evicted. It needs mu.
func (m *Memory) next() (best *request) {
	if len(m.queue) == 0 {
		return nil
	}
	head := m.head(time.Now())
	for _, a := range m.queue {
		r := a.waiting[0]
		overtakes := head != nil && r != head && !r.before(head) && r.n > Tiny
		if !overtakes && m.fits(a, r.n, r.grows) && (best == nil || r.before(best)) {
			best = r
		}
	}
	return best
}

// before reports whether r is to be granted before other.
func (r *request) before(other *request) bool {
	if r.a.share != other.a.share {
		return r.a.share.octets+r.n < other.a.share.octets+other.n
	}
	return r.a.octets+r.n < other.a.octets+other.n
}

// press evicts accounts for the requests that have waited for too long.
func (m *Memory) press() {
	defer panics.Recover()
	m.mu.Lock()
	m.pressing = false
	victims := m.victims(time.Now())
	for _, a := range victims {
		a.evicted = true
	}
	m.grant()
	for _, a := range victims {
		a.debtor.Evict(ErrNoMemory)
	}
}

// head returns the first, in the order of before, of the requests that have waited for
// too long; nil if there is none. It needs mu.
func (m *Memory) head(now time.Time) *request {
	var head *request
	for _, a := range m.queue {
		if r := a.waiting[0]; r.presses(now) && (head == nil || r.before(head)) {
			head = r
		}
	}
	return head
}

// presses reports whether a request has waited for others for too long.
func (r *request) presses(now time.Time) bool {
	a := r.a
	waitsForItself := a.octets > 0 && a.octets+r.n > a.most && !r.grows
	return !waitsForItself && !a.evicted && now.Sub(r.since) >= Patience
}

// victims returns the accounts to evict for the requests that have waited for too long.
// It needs mu.
func (m *Memory) victims(now time.Time) (victims []*Account) {
	var wants []*request
	for _, a := range m.queue {
		if r := a.waiting[0]; r.presses(now) {
			wants = append(wants, r)
		}
	}
	if wants == nil {
		return nil
	}
	slices.SortStableFunc(wants, func(r, other *request) int {
		switch {
		case r.before(other):
			return -1
		case other.before(r):
			return 1
		}
		return 0
	})
	var all []holding
	w := want{limit: m.limit, used: m.used}
	for a := range m.accounts {
		switch {
		case a.evicted:
			w.used -= a.octets
		case a.octets > 0:
			all = append(all, holding{a, a.share, a.octets, a.debtor.Stake()})
		}
	}
	for _, r := range wants {
		w.account, w.share, w.n, w.waited = r.a, r.a.share, r.n, now.Sub(r.since)
		before := w.used
		var who []int
		who, w.used = evictees(all, w)
		if len(who) == 0 && before+r.n > m.limit {
			break // nothing can be evicted for the others, either
		}
		for _, i := range who {
			victims = append(victims, all[i].account)
			all[i].octets = 0
		}
		w.used += r.n // as if granted
	}
	return victims
}
