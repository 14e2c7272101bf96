package fairness

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weft-rdma/weft/origin"
)

// shareOf is the share of an address.
func shareOf(addr string) origin.Share {
	return origin.Of(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1))).Share()
}

var (
	attacker = shareOf("192.0.2.1")
	honest   = shareOf("192.0.2.2")
)

// A fakeHolder is a connection that is gone after some time when it is evicted.
type fakeHolder struct {
	mu     sync.Mutex
	stands Standing
	place  *Place
	leaves time.Duration // -1: never
	why    error
}

func (h *fakeHolder) Standing() Standing {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.stands
}

func (h *fakeHolder) Evict(why error) (gone bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why = why
	if h.leaves > 0 {
		time.AfterFunc(h.leaves, h.place.Free)
	}
	return h.leaves == 0
}

func (h *fakeHolder) take(t *testing.T, p *Places, share origin.Share) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	place, err := p.Acquire(ctx, share, h)
	h.mu.Lock()
	h.place = place
	h.mu.Unlock()
	return err
}

func TestPlacesAreNeverExceeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(8)
		for range 100 {
			h := &fakeHolder{stands: Standing{Since: time.Now()}, leaves: time.Millisecond}
			if err := h.take(t, p, attacker); err != nil {
				t.Fatal(err)
			}
			if n := p.Len(); n > 8 {
				t.Fatalf("%d places are taken", n)
			}
		}
		if len(p.shares) != 1 {
			t.Errorf("%d shares are remembered, want 1", len(p.shares))
		}
		synctest.Wait()
		for _, place := range append([]*Place(nil), p.held...) {
			place.Free()
		}
		if p.Len() != 0 || len(p.shares) != 0 {
			t.Errorf("%d places and %d shares are left", p.Len(), len(p.shares))
		}
	})
}

// Whatever one share does, another one's connections come in at once and stay.
func TestAnotherShareComesInAndStays(t *testing.T) {
	for name, stands := range map[string]Standing{"silent": {}, "idle": {Spoken: true}, "at work": {Spoken: true, Working: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := NewPlaces(8)
				flood := func() {
					stands.Since = time.Now()
					h := &fakeHolder{stands: stands}
					_ = h.take(t, p, attacker)
				}
				for range 20 {
					flood()
				}
				h := &fakeHolder{stands: Standing{Since: time.Now()}}
				began := time.Now()
				if err := h.take(t, p, honest); err != nil || time.Since(began) > time.Second {
					t.Fatalf("after %v: %v", time.Since(began), err)
				}
				for range 50 {
					time.Sleep(time.Second)
					flood()
				}
				if h.why != nil {
					t.Errorf("evicted: %v", h.why)
				}
			})
		})
	}
}

func TestANewcomerWaitsUntilItsPlaceIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(1)
		old := &fakeHolder{stands: Standing{Since: time.Now()}, leaves: 50 * time.Millisecond}
		if err := old.take(t, p, attacker); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		next := &fakeHolder{stands: Standing{Since: began}}
		if err := next.take(t, p, attacker); err != nil || time.Since(began) != old.leaves || old.why != ErrEvicted {
			t.Errorf("after %v: %v; the other was evicted as %v", time.Since(began), err, old.why)
		}
		next.mu.Lock()
		next.leaves = -1 // hangs
		next.mu.Unlock()
		if err := new(fakeHolder).take(t, p, honest); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got a place that is not free: %v", err)
		}
	})
}

func TestOneThatHangsIsNotWaitedForAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPlaces(2)
		for _, leaves := range []time.Duration{-1, 0} {
			h := &fakeHolder{stands: Standing{Since: time.Now()}, leaves: leaves}
			if err := h.take(t, p, attacker); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		began := time.Now()
		if err := new(fakeHolder).take(t, p, honest); err != nil || time.Since(began) > 2*evictionTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}

func TestWhereAllWorkTheNewcomerIsRefused(t *testing.T) {
	p := NewPlaces(2)
	for range 2 {
		h := &fakeHolder{stands: Standing{Spoken: true, Working: true}, leaves: -1}
		if err := h.take(t, p, attacker); err != nil {
			t.Fatal(err)
		}
	}
	if err := new(fakeHolder).take(t, p, attacker); err != ErrFull {
		t.Errorf("got %v, want %v", err, ErrFull)
	}
	if p.Relieve(attacker) || !p.Relieve(honest) || p.Len() != 2 {
		t.Error("Relieve does not choose as Acquire does")
	}
}
