// What regions and windows have in common: an STag index, and a registration while
// they are Valid. A registration ends for good; the next one is another.

package memory

import (
	"fmt"
	"sync/atomic"
)

// An object is what an STag index stands for.
type object struct {
	table   *Table
	index   uint32
	region  *Region // the region that it is, or nil
	window  *Window // the window that it is, or nil
	gone    bool    // deallocated; Table.mu
	current atomic.Pointer[registration]
}

// current is never nil: an object that is Invalid has its last registration, or
// one that never was valid. It is changed under Table.mu, and only when nobody
// holds the one before: so there is never more than one to be waited for.

// STag is the name of it: its index and the key last given.
func (o *object) STag() STag { return o.current.Load().stag }

// Index is the STag index.
func (o *object) Index() uint32 { return o.index }

// Valid reports whether the STag gives access now.
func (o *object) Valid() bool { return !o.current.Load().revoked() }

// Base is the tagged offset of the first octet.
func (o *object) Base() uint64 { return o.current.Load().base }

// ZeroBased reports whether tagged offsets count from 0 rather than from VA.
func (o *object) ZeroBased() bool { return o.current.Load().zero }

// Len is the number of octets.
func (o *object) Len() uint64 { return o.current.Load().length }

// Access is the set of rights.
func (o *object) Access() Access { return o.current.Load().access }

// Stream is the only stream that may use it; 0 means all of its domain.
func (o *object) Stream() Stream { return o.current.Load().stream }

// add gives an object an index and its first registration. It needs mu.
func (t *Table) add(o *object, g *registration) error {
	index, err := t.draw()
	if err != nil {
		return err
	}
	o.table, o.index = t, index
	g.stag = makeSTag(index, g.stag.Key())
	o.current.Store(g)
	t.dir.insert(o)
	return nil
}

// drop takes an object out. It needs mu.
func (t *Table) drop(o *object) {
	t.end(o)
	o.gone = true
	t.dir.remove(o)
	t.retire(o.index)
	if o.window != nil {
		t.usage.Windows--
		o.window.pd.windows--
	} else {
		t.usage.Regions--
		o.current.Load().pd.regions--
	}
}

// end makes an object Invalid. Nobody can hold its registration from now on, but
// who does may still; it is returned, to be waited for without mu. end needs mu.
func (t *Table) end(o *object) *registration {
	g := o.current.Load()
	if !g.mark() {
		return g // it was Invalid
	}
	if w := o.window; w != nil {
		w.under.windows--
		w.under = nil
		if t.bound[g.stream]--; t.bound[g.stream] == 0 {
			delete(t.bound, g.stream)
		}
	} else {
		t.usage.Bytes -= g.length
	}
	return g
}

// start makes an object Valid that is Invalid and held by nobody. It needs mu.
func (t *Table) start(o *object, g *registration) {
	o.current.Store(g)
	if o.region != nil {
		t.usage.Bytes += g.length
	}
}

// Deallocate ends a region whatever its state (Verbs §7.9). It returns when no
// octet can move through the STag any more, in either direction; the caller
// must not hold the region. Accesses in process fail with a protection error
// from their next segment on.
//
// It fails with ErrWindows while windows are bound to the region. A second
// Deallocate fails with ErrRegion, but not before the first has done its work.
func (t *Table) Deallocate(r *Region) error {
	if r == nil || r.table != t {
		return fmt.Errorf("memory: deallocate: %w: not of this RNIC", ErrRegion)
	}
	return t.deallocate(&r.object, ErrRegion)
}

// DeallocateWindow ends a window whatever its state, as Deallocate does a region.
// It fails with ErrWindow for one that is not of this Table or gone.
func (t *Table) DeallocateWindow(w *Window) error {
	if w == nil || w.table != t {
		return fmt.Errorf("memory: deallocate: %w: not of this RNIC", ErrWindow)
	}
	return t.deallocate(&w.object, ErrWindow)
}

// DeallocateIndex ends the region or window of an STag index, as Deallocate and
// DeallocateWindow do. It fails with ErrRegion if there is none.
func (t *Table) DeallocateIndex(index uint32) error {
	o := t.dir.lookup(index)
	if o == nil {
		return fmt.Errorf("memory: deallocate STag index %#x: %w", index, ErrRegion)
	}
	return t.deallocate(o, ErrRegion)
}

func (t *Table) deallocate(o *object, unknown error) error {
	t.mu.Lock()
	g := o.current.Load()
	switch {
	case o.gone:
		t.mu.Unlock()
		<-g.drained
		return fmt.Errorf("memory: deallocate STag %v: %w: already deallocated", g.stag, unknown)
	case o.region != nil && o.region.windows > 0:
		defer t.mu.Unlock()
		return fmt.Errorf("memory: deallocate STag %v: %w: %d: invalidate or deallocate them first", g.stag, ErrWindows, o.region.windows)
	}
	t.drop(o)
	t.mu.Unlock()
	<-g.drained
	return nil
}
