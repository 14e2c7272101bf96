// This file is a limited number of places for connections.

package fairness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// Why a connection has no place, or no longer.
var (
	ErrFull    = errors.New("too many connections, and none that could make room for one of this origin")
	ErrEvicted = errors.New("too many connections: closed in favour of another")
	// ErrNoMemory is of those that a [Memory] evicts.
	ErrNoMemory = errors.New("too little memory: closed, as others waited for what it had and made no use of")
)

// A Holder is a connection that has a place. Its methods may be called by any
// goroutine.
type Holder interface {
	// Standing is asked with the places locked: it must not wait.
	Standing() Standing

	// Evict closes the connection, and reports whether its descriptor is closed by
	// now: then the place is free. Its owner calls [Place.Free] in any case.
	Evict(why error) (gone bool)
}

// Places are a number of places that is never exceeded. Methods may be called by
// any goroutine.
type Places struct {
	limit int

	mu      sync.Mutex
	held    []*Place
	leaving int // evicted, and not free yet
	shares  map[origin.Share]*tally
	freed   chan struct{} // closed when a place is; nil if nobody waits
	scratch []candidate
}

// A Place is one of them.
type Place struct {
	places *Places
	holder Holder
	share  origin.Share
	tally  *tally
	index  int  // in places.held; -1: evicted
	free   bool // counted out
}

// NewPlaces makes so many places, at least one.
func NewPlaces(limit int) *Places {
	return &Places{limit: max(limit, 1), shares: make(map[origin.Share]*tally)}
}

// departure is how long one that was evicted may take to be gone before another
// one is evicted, too.
const departure = 100 * time.Millisecond

// Take takes a place for a connection of a share, if need be that of another,
// which is evicted and is gone when Take returns. Fails with ErrFull or the
// context's error.
func (p *Places) Take(ctx context.Context, share origin.Share, h Holder) (*Place, error) {
	var late <-chan time.Time // not to wait any longer for those who leave
	for {
		p.mu.Lock()
		if len(p.held)+p.leaving < p.limit {
			place := p.add(share, h)
			p.mu.Unlock()
			return place, nil
		}
		if p.leaving > 0 && late == nil {
			timer := time.NewTimer(departure)
			defer timer.Stop()
			late = timer.C
		}
		if p.leaving == 0 || expired(late) {
			late = nil
			victim := p.choose(share)
			if victim == nil && p.leaving == 0 {
				p.mu.Unlock()
				return nil, ErrFull
			}
			if victim != nil {
				p.evict(victim)
				continue
			}
		}
		if p.freed == nil {
			p.freed = make(chan struct{})
		}
		freed := p.freed
		p.mu.Unlock()
		select {
		case <-freed:
		case <-late:
			late = closed
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// closed stands for a timer that has expired.
var closed = func() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}()

func expired(late <-chan time.Time) bool { return late == closed }

// Relieve evicts whoever would have to go for a connection of a share if there
// were no place left, and reports false if nobody would.
func (p *Places) Relieve(share origin.Share) bool {
	p.mu.Lock()
	victim := p.choose(share)
	if victim == nil {
		p.mu.Unlock()
		return false
	}
	p.evict(victim)
	return true
}

// evict has somebody go; needs mu, which it unlocks.
func (p *Places) evict(victim *Place) {
	p.remove(victim)
	p.leaving++
	p.mu.Unlock()
	if victim.holder.Evict(ErrEvicted) {
		victim.Free()
	}
}

// Len is how many places are taken.
func (p *Places) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held) + p.leaving
}

// add counts a connection in; needs mu.
func (p *Places) add(share origin.Share, h Holder) *Place {
	t := p.tally(share)
	t.places++
	place := &Place{places: p, holder: h, share: share, tally: t, index: len(p.held)}
	p.held = append(p.held, place)
	return place
}

// tally returns that of a share; needs mu.
func (p *Places) tally(share origin.Share) *tally {
	t := p.shares[share]
	if t == nil {
		t = new(tally)
		p.shares[share] = t
	}
	return t
}

// choose returns who has to go for one more of a share; needs mu.
func (p *Places) choose(share origin.Share) *Place {
	now := time.Now()
	p.scratch = slices.Grow(p.scratch[:0], len(p.held))
	for _, place := range p.held {
		p.scratch = append(p.scratch, candidate{Standing: place.holder.Standing(), share: place.tally})
	}
	own := p.tally(share)
	own.places++
	i := choose(p.scratch, own, p.limit, now)
	own.places--
	p.forget(share, own)
	if i < 0 {
		return nil
	}
	return p.held[i]
}

// remove takes a place out of those held; needs mu.
func (p *Places) remove(place *Place) {
	last := len(p.held) - 1
	p.held[place.index] = p.held[last]
	p.held[place.index].index = place.index
	p.held[last] = nil
	p.held = p.held[:last]
	place.index = -1
	place.tally.places--
	p.forget(place.share, place.tally)
}

// forget drops the tally of a share that has nothing; needs mu.
func (p *Places) forget(share origin.Share, t *tally) {
	if t.places == 0 {
		delete(p.shares, share)
	}
}

// Free gives the place back when the connection's descriptor is closed or counts
// elsewhere. To call it again does nothing.
func (place *Place) Free() {
	p := place.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if place.free {
		return
	}
	place.free = true
	if place.index >= 0 {
		p.remove(place)
	} else {
		p.leaving--
	}
	if p.freed != nil {
		close(p.freed)
		p.freed = nil
	}
}
