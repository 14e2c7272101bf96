// This file is a limited amount of memory for messages.

package fairness

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// Patience is how long a peer may leave memory lying while others wait for it.
const Patience = 250 * time.Millisecond

// Requests are large, small up to this, or tiny up to that, in octets.
const (
	Small = 64<<10 + 4<<10
	Tiny  = 16 << 10
)

// spare says how much a share may have: so many times what is free. By large
// requests a share by itself gets three quarters of the memory, and n of them 3/(1+3n)
// each. So there is always something free for one more. Small requests get nearer to
// the limit, and tiny ones up to it.
func spare(n int64) int64 {
	if n <= Small {
		return 16
	}
	return 3
}

// A Stake is what becomes of the memory of an account.
type Stake struct {
	// Theirs says that it is the peer's turn, to send the rest of a message, or to
	// take what was sent to it. Since then nothing has come of it for Idle.
	Theirs bool
	Idle   time.Duration

	// Stuck says that all of it waits for more memory: nothing will come back.
	Stuck bool
}

// A Debtor is who has memory. Its methods may be called by any goroutine.
type Debtor interface {
	// Stake is asked with the memory locked: it must not wait.
	Stake() Stake

	// Evict ends the connection, and so gives the memory back, sooner or later. It
	// must not wait for the peer.
	Evict(why error) (gone bool)
}

// Memory is a number of octets of which no more are given out: only a message
// longer than all of it is taken nevertheless, alone. Methods may be called by any
// goroutine.
type Memory struct {
	limit int64

	mu       sync.Mutex
	used     int64
	shares   map[origin.Share]*use
	accounts map[*Account]struct{}
	queue    []*Account // those that wait, who has waited longest first
	pressing bool       // press is to come
}

// A use is what the accounts of a share have.
type use struct {
	octets   int64
	accounts int
}

// Unlimited is more octets than there are.
const Unlimited = 1 << 56

// NewMemory makes a memory of so many octets.
func NewMemory(limit int64) *Memory {
	return &Memory{limit: limit, shares: make(map[origin.Share]*use), accounts: make(map[*Account]struct{})}
}

// An Account is what one connection has of a memory. Methods may be called by any
// goroutine.
type Account struct {
	m       *Memory
	key     origin.Share
	share   *use
	most    int64 // octets
	debtor  Debtor
	octets  int64
	waiting []*request // oldest first: only the first is in question
	evicted bool
	closed  bool
}

// Open opens an account of a share. It may have most octets, or one message that
// is longer.
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

// Close closes the account, once. What is out may be given back later.
func (a *Account) Close() {
	m := a.m
	m.mu.Lock()
	defer m.mu.Unlock()
	a.closed = true
	delete(m.accounts, a)
	a.forget()
}

// forget drops the share of an account that was the last of it; needs mu.
func (a *Account) forget() {
	if !a.closed || a.octets > 0 {
		return
	}
	a.octets = 0
	if a.share.accounts--; a.share.accounts == 0 {
		delete(a.m.shares, a.key)
	}
}

// Limit is how many octets there are.
func (m *Memory) Limit() int64 { return m.limit }

// Used is how many octets are out.
func (m *Memory) Used() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// A request waits for memory.
type request struct {
	a       *Account
	n       int64
	grows   bool // it is for more of a message
	since   time.Time
	granted func() // called in a goroutine of its own
}

// fits reports whether there is room for n octets; needs mu.
func (m *Memory) fits(a *Account, n int64, grows bool) bool {
	if m.used == 0 || grows && m.used == a.octets {
		return true // alone
	}
	if m.used+n > m.limit || a.octets > 0 && a.octets+n > a.most && !grows {
		return false
	}
	return n <= Tiny || a.share.octets+n <= spare(n)*(m.limit-m.used-n)
}

// take counts n octets; needs mu.
func (a *Account) take(n int64) {
	a.octets += n
	a.share.octets += n
	a.m.used += n
}

// Try takes n octets if they are there and nobody waits. Grows is that of Take.
func (a *Account) Try(n int, grows bool) bool {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	return a.try(int64(n), grows)
}

func (a *Account) try(n int64, grows bool) bool {
	if len(a.m.queue) > 0 || !a.m.fits(a, n, grows) {
		return false // who waits already comes first, or not: settle knows
	}
	a.take(n)
	return true
}

// Force takes n octets in any case.
func (a *Account) Force(n int) {
	a.m.mu.Lock()
	defer a.m.mu.Unlock()
	a.take(int64(n))
}

// Take takes n octets when they are there, or fails with the cause of the context's
// end. Grows says that they are for more of a message part of which has its memory
// already: the account's own limit is not held against it.
func (a *Account) Take(ctx context.Context, n int, grows bool) error {
	a.m.mu.Lock()
	if a.try(int64(n), grows) {
		a.m.mu.Unlock()
		return nil
	}
	there := make(chan struct{})
	cancel := a.ask(int64(n), grows, func() { close(there) })
	select {
	case <-there:
		return nil
	case <-ctx.Done():
		if cancel() {
			return context.Cause(ctx)
		}
		return nil // just in time
	}
}

// Ask takes n octets when they are there, and has granted called then, in a
// goroutine of its own. Cancel ends the wait, and reports false if that is over.
func (a *Account) Ask(n int, granted func()) (cancel func() bool) {
	a.m.mu.Lock()
	return a.ask(int64(n), false, granted)
}

// ask needs mu, which it unlocks.
func (a *Account) ask(n int64, grows bool, granted func()) (cancel func() bool) {
	m := a.m
	r := &request{a: a, n: n, grows: grows, since: time.Now(), granted: granted}
	a.waiting = append(a.waiting, r)
	if len(a.waiting) == 1 {
		m.queue = append(m.queue, a)
		m.settle()
	} else {
		m.mu.Unlock()
	}
	return func() bool {
		m.mu.Lock()
		i := slices.Index(a.waiting, r)
		if i >= 0 {
			a.unwait(i)
		}
		m.settle()
		return i >= 0
	}
}

// unwait takes a request out; needs mu.
func (a *Account) unwait(i int) {
	a.waiting = slices.Delete(a.waiting, i, i+1)
	if len(a.waiting) == 0 {
		at := slices.Index(a.m.queue, a)
		a.m.queue = slices.Delete(a.m.queue, at, at+1)
	}
}

// Give gives n octets back.
func (a *Account) Give(n int) {
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
	m.settle()
}

// settle grants what can be granted, and sees to it that somebody does something
// about the rest. It needs mu, which it unlocks.
func (m *Memory) settle() {
	for r := m.next(); r != nil; r = m.next() {
		r.a.unwait(0)
		r.a.take(r.n)
		go r.granted()
	}
	if len(m.queue) > 0 && !m.pressing {
		m.pressing = true
		time.AfterFunc(Patience, m.press)
	}
	m.mu.Unlock()
}

// next returns the request that is to be granted next: of those for which there is
// room, that of the share, and then of the account, that would have least; nil if
// there is none. Nothing large overtakes one for which room is being made. It needs
// mu.
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

// press evicts those for whose memory others have to wait.
func (m *Memory) press() {
	m.mu.Lock()
	m.pressing = false
	victims := m.victims(time.Now())
	for _, a := range victims {
		a.evicted = true
	}
	m.settle()
	for _, a := range victims {
		a.debtor.Evict(ErrNoMemory)
	}
}

// head returns the request that comes next of those that have waited for others;
// nil if there is none. It needs mu.
func (m *Memory) head(now time.Time) *request {
	var head *request
	for _, a := range m.queue {
		if r := a.waiting[0]; r.presses(now) && (head == nil || r.before(head)) {
			head = r
		}
	}
	return head
}

// presses reports whether a request has waited for others, for long enough.
func (r *request) presses(now time.Time) bool {
	a := r.a
	waitsForItself := a.octets > 0 && a.octets+r.n > a.most && !r.grows
	return !waitsForItself && !a.evicted && now.Sub(r.since) >= Patience
}

// victims chooses who has to give memory back for those that wait. It needs mu.
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
			break // there is nothing to be had for those behind either
		}
		for _, i := range who {
			victims = append(victims, all[i].account)
			all[i].octets = 0
		}
		w.used += r.n // it will have it
	}
	return victims
}
