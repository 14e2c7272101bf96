// A limited number of places for connections.
//
// Locking: Places.mu guards everything. Holder.Standing is called with it, so it takes
// no lock that is held around Acquire or Free; Holder.Evict is called without it.

package fairness

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// Why a connection gets no place, or loses it.
var (
	ErrFull    = errors.New("too many connections, and none can be evicted for one of this origin")
	ErrEvicted = errors.New("too many connections: closed in favour of another")
	// ErrNoMemory is for those that a [Memory] evicts.
	ErrNoMemory = errors.New("too little memory: closed, because others waited for memory that it held and did not use")
)

// A Holder is a connection that has a place. Its methods may be called by any
// goroutine.
type Holder interface {
	// Standing is called with the places locked: it must not wait.
	Standing() Standing

	// Evict closes the connection, and reports whether its descriptor is closed
	// already: then the place is free. The owner calls [Place.Free] in any case.
	Evict(why error) (gone bool)
}

// Places are a fixed number of places. Methods may be called by any goroutine.
type Places struct {
	limit int

	mu      sync.Mutex
	held    []*Place
	leaving int // places whose holders were evicted and that are not free yet
	shares  map[origin.Share]*tally
	freed   chan struct{} // closed when a place becomes free; nil if nobody waits
	scratch []candidate
}

// A Place is one of a Places.
type Place struct {
	places *Places
	holder Holder
	share  origin.Share
	tally  *tally
	index  int  // in places.held; -1 if evicted
	free   bool // Free was called
}

// NewPlaces returns limit places, at least one.
func NewPlaces(limit int) *Places {
	return &Places{limit: max(limit, 1), shares: make(map[origin.Share]*tally)}
}

// evictionTimeout is how long an evicted holder may take to close its descriptor before
// another one is evicted, too.
const evictionTimeout = 100 * time.Millisecond

// Acquire gets a place for a connection of a share. If none is free it evicts another
// connection, which has closed its descriptor when Acquire returns. It fails with
// ErrFull or the cause of the context's end.
func (p *Places) Acquire(ctx context.Context, share origin.Share, h Holder) (*Place, error) {
	var late <-chan time.Time // when to evict another one
	for {
		p.mu.Lock()
		if len(p.held)+p.leaving < p.limit {
			place := p.add(share, h)
			p.mu.Unlock()
			return place, nil
		}
		if p.leaving > 0 && late == nil {
			timer := time.NewTimer(evictionTimeout)
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

// Relieve evicts the holder that Acquire would evict for a connection of a share if no
// place were free. It reports false if there is none.
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

// evict evicts the holder of a place. It needs mu, which it unlocks.
func (p *Places) evict(victim *Place) {
	p.remove(victim)
	p.leaving++
	p.mu.Unlock()
	if victim.holder.Evict(ErrEvicted) {
		victim.Free()
	}
}

// Len returns how many places are taken.
func (p *Places) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held) + p.leaving
}

// add gives a place to h. It needs mu.
func (p *Places) add(share origin.Share, h Holder) *Place {
	t := p.tally(share)
	t.places++
	place := &Place{places: p, holder: h, share: share, tally: t, index: len(p.held)}
	p.held = append(p.held, place)
	return place
}

// tally returns the tally of a share. It needs mu.
func (p *Places) tally(share origin.Share) *tally {
	t := p.shares[share]
	if t == nil {
		t = new(tally)
		p.shares[share] = t
	}
	return t
}

// choose returns the place to be taken for one more connection of a share, nil if there
// is none. It needs mu.
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

// remove removes a place from those held. It needs mu.
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

// forget drops the tally of a share without places. It needs mu.
func (p *Places) forget(share origin.Share, t *tally) {
	if t.places == 0 {
		delete(p.shares, share)
	}
}

// Free frees the place, once the connection's descriptor is closed or is counted
// elsewhere. Further calls do nothing.
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
