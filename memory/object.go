// What regions and windows have in common: an STag index, and a registration while they
// are Valid. A registration that ended never becomes valid again; the next one is new.

package memory

import (
	"fmt"
	"sync/atomic"
)

// An object is what an STag index refers to.
type object struct {
	table   *Table
	index   uint32
	region  *Region // if it is a region
	window  *Window // if it is a window
	gone    bool    // deallocated; Table.mu
	current atomic.Pointer[registration]
}

// current is never nil: an Invalid object has its last registration, or one that was
// never valid. It is changed under Table.mu, and only while nobody holds the one before,
// so that there is never more than one to wait for.

// STag returns the index with the last key.
func (o *object) STag() STag { return o.current.Load().stag }

// Index returns the STag index.
func (o *object) Index() uint32 { return o.index }

// Valid reports whether the object is Valid now.
func (o *object) Valid() bool { return !o.current.Load().revoked() }

// Base returns the tagged offset of the first octet.
func (o *object) Base() uint64 { return o.current.Load().base }

// ZeroBased reports whether tagged offsets count from 0 rather than from VA.
func (o *object) ZeroBased() bool { return o.current.Load().zero }

// Len returns the number of octets.
func (o *object) Len() uint64 { return o.current.Load().length }

// Access returns the rights.
func (o *object) Access() Access { return o.current.Load().access }

// Stream returns the only stream that may use it; 0 means all of its domain.
func (o *object) Stream() Stream { return o.current.Load().stream }

// add gives an object an index and its first registration, and adds it to the table. It
// needs mu.
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

// drop removes an object from the table. It needs mu.
func (t *Table) drop(o *object) {
	t.end(o)
	o.gone = true
	t.dir.remove(o)
	t.resting.add(o.index)
	if o.window != nil {
		t.usage.Windows--
		o.window.pd.windows--
	} else {
		t.usage.Regions--
		o.current.Load().pd.regions--
	}
}

// end makes an object Invalid and returns its registration, which gets no new holders;
// wait for its present ones without mu. end needs mu.
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

// start makes an Invalid object without holders Valid. It needs mu.
func (t *Table) start(o *object, g *registration) {
	o.current.Store(g)
	if o.region != nil {
		t.usage.Bytes += g.length
	}
}

// Deallocate deallocates a region, whatever its state (Verbs §7.9). It returns when no
// octet can move through the STag any more, in either direction; the caller must not hold
// the region. Messages in progress fail with a protection error at their next segment.
//
// It fails with ErrWindows while windows are bound to the region. A second Deallocate
// fails with ErrRegion, after the first has finished.
func (t *Table) Deallocate(r *Region) error {
	if r == nil || r.table != t {
		return fmt.Errorf("memory: deallocate: %w: not of this RNIC", ErrRegion)
	}
	return t.deallocate(&r.object, ErrRegion)
}

// DeallocateWindow is Deallocate for a window. It fails with ErrWindow if the window is
// not of this Table or deallocated.
func (t *Table) DeallocateWindow(w *Window) error {
	if w == nil || w.table != t {
		return fmt.Errorf("memory: deallocate: %w: not of this RNIC", ErrWindow)
	}
	return t.deallocate(&w.object, ErrWindow)
}

// DeallocateIndex is Deallocate for the region or window with an STag index. It fails
// with ErrRegion if there is none.
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
		g.await()
		return fmt.Errorf("memory: deallocate STag %v: %w: already deallocated", g.stag, unknown)
	case o.region != nil && o.region.windows > 0:
		defer t.mu.Unlock()
		return fmt.Errorf("memory: deallocate STag %v: %w: %d: invalidate or deallocate them first", g.stag, ErrWindows, o.region.windows)
	}
	t.drop(o)
	t.mu.Unlock()
	g.await()
	return nil
}
