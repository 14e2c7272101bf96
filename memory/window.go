// This file is memory windows: allocation and binding (Verbs §7.10).

package memory

import (
	"fmt"
	"math"
)

// A Window is a Memory Window (Verbs §7.10): an STag that gives the peer of one stream
// rights to a part of a region while it is bound. It is Invalid before Bind and after
// Invalidate. Local work requests can't use it. Its methods may be called by any
// goroutine.
type Window struct {
	object
	pd    *PD
	under *Region // the region that it is bound to, or nil; Table.mu
}

// PD returns the protection domain.
func (w *Window) PD() *PD { return w.pd }

// AllocWindow makes an Invalid window (Verbs §7.10.1). It fails with ErrPD,
// ErrWindowLimit or ErrClosed; a failure changes nothing.
func (t *Table) AllocWindow(pd *PD) (*Window, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.checkPD(pd)
	switch {
	case t.closed:
		err = ErrClosed
	case err == nil && t.usage.Windows >= t.cfg.MaxWindows:
		err = fmt.Errorf("%w: the limit is %d (Config.MaxWindows)", ErrWindowLimit, t.cfg.MaxWindows)
	}
	w := &Window{pd: pd}
	w.window = w
	if err == nil {
		err = t.add(&w.object, neverValid())
	}
	if err != nil {
		return nil, fmt.Errorf("memory: allocate window: %w", err)
	}
	t.usage.Windows++
	pd.windows++
	return w, nil
}

// A Binding describes what a window gives access to (Verbs §7.10.2).
type Binding struct {
	Window    STag   // the window's index and its new key
	Region    STag   // the region's whole STag
	VA        uint64 // tagged offset, in the region, of the first octet
	Length    uint64 // octets, at least 1
	ZeroBased bool   // the window's offsets count from 0, not from VA
	Access    Access // RemoteRead, RemoteWrite, RemoteAtomic: at least one
}

// Bind makes an Invalid window Valid for a stream of pd (Verbs §7.10.2), which is not 0.
// It waits for the holders of the window's last registration, which has been revoked; the
// caller must not hold it.
//
// It fails with ErrWindow if the index is not that of a window; ErrNotInvalid; ErrRegion
// if there is no such region, or it is not Valid or has another key; ErrPD if window,
// region and stream are not of one domain; ErrAccess if the region does not have
// BindWindow, is zero based, or lacks a local right that b.Access requires; ErrWrap;
// ErrBounds; ErrRetired. A failure changes nothing.
func (t *Table) Bind(pd *PD, stream Stream, b Binding) error {
	for {
		was, err := t.bind(pd, stream, &b)
		if was == nil {
			if err != nil {
				return fmt.Errorf("memory: bind window %v to region %v: %w", b.Window, b.Region, err)
			}
			return nil
		}
		was.await()
	}
}

// bind is Bind without waiting: if was is not nil, wait for its holders and try again.
// The checks are those of Verbs §7.10.6.1.
func (t *Table) bind(pd *PD, stream Stream, b *Binding) (was *registration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, r := t.dir.lookup(b.Window.Index()), t.dir.lookup(b.Region.Index())
	if w == nil || w.window == nil {
		return nil, ErrWindow
	}
	if was = w.current.Load(); !was.revoked() {
		return nil, ErrNotInvalid
	}
	if r == nil || r.region == nil {
		return nil, ErrRegion
	}
	under := r.current.Load()
	if err := b.check(w.window.pd, under, pd, stream); err != nil {
		return nil, err
	}
	if _, retired := t.retired[stream]; retired {
		return nil, ErrRetired
	}
	if was.held() {
		return was, nil
	}
	g := &registration{
		stag: makeSTag(w.index, b.Window.Key()), access: b.Access, zero: b.ZeroBased, window: true, stream: stream,
		extent: under.part(b.VA-under.base, b.Length), under: under,
	}
	under.hold() // succeeds: it is Valid, and can't be revoked without mu
	if !b.ZeroBased {
		g.base = b.VA
	}
	w.window.under = r.region
	r.region.windows++
	t.bound[stream]++
	t.start(w, g)
	return nil, nil
}

// check is what is wrong with binding a window of protection domain own to the
// registration under, for a stream of pd, or nil.
func (b *Binding) check(own *PD, under *registration, pd *PD, stream Stream) error {
	switch {
	case under.stag != b.Region, under.revoked():
		return fmt.Errorf("%w: it is not Valid, or has another key", ErrRegion)
	case own != pd, under.pd != pd, under.stream != 0 && under.stream != stream:
		return ErrPD
	case under.access&BindWindow == 0:
		return fmt.Errorf("%w: windows may not be bound to it", ErrAccess)
	case under.zero:
		return fmt.Errorf("%w: it is zero based", ErrAccess)
	case !b.Access.onWindow(under.access):
		return fmt.Errorf("%w: %v on %v", ErrAccess, b.Access, under.access)
	case b.Length > 0 && b.VA > math.MaxUint64-(b.Length-1):
		return fmt.Errorf("%w: %#x + %d exceeds 2^64", ErrWrap, b.VA, b.Length)
	case b.Length == 0, b.VA-under.base >= under.length, b.Length > under.length-(b.VA-under.base):
		return fmt.Errorf("%w: %d octets at %#x, the region has %d at %#x", ErrBounds, b.Length, b.VA, under.length, under.base)
	}
	return nil
}

// RetireStream ends the binding of windows to a stream: Bind fails with ErrRetired
// from now on, until ForgetStream. RetireStream fails with ErrStreamWindows, having
// changed nothing, while windows are bound to the stream (Verbs §6.1.4).
func (t *Table) RetireStream(stream Stream) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := t.bound[stream]; n > 0 {
		return fmt.Errorf("memory: retire stream: %w: %d: invalidate or deallocate them first", ErrStreamWindows, n)
	}
	t.retired[stream] = struct{}{}
	return nil
}

// ForgetStream ends RetireStream, for a stream that has ended.
func (t *Table) ForgetStream(stream Stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.retired, stream)
}

// WindowAttributes is the result of Query Memory Window (Verbs §9.2.6.8).
type WindowAttributes struct {
	Index  uint32 // STag index
	Key    uint8  // STag key, if Valid
	Valid  bool   // state: bound
	PD     *PD
	Access Access // if Valid

	// If Valid, what it is bound to:
	Stream    Stream
	Region    uint32 // STag index
	Base      uint64 // tagged offset of the first octet
	Length    uint64 // octets
	ZeroBased bool
}

// QueryWindow returns the attributes of the window with an STag index. It fails with
// ErrWindow if there is none.
func (t *Table) QueryWindow(index uint32) (WindowAttributes, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.dir.lookup(index)
	if o == nil || o.window == nil {
		return WindowAttributes{}, fmt.Errorf("memory: query window: %w: index %#x", ErrWindow, index)
	}
	a := WindowAttributes{Index: index, PD: o.window.pd}
	if g := o.current.Load(); !g.revoked() {
		a.Key, a.Valid, a.Access = g.stag.Key(), true, g.access
		a.Stream, a.Region, a.Base, a.Length, a.ZeroBased = g.stream, o.window.under.index, g.base, g.length, g.zero
	}
	return a, nil
}
