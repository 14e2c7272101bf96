// This file is memory windows (Verbs §7.10, §9.2.6).

package verbs

import "github.com/weft-rdma/weft/memory"

// A Binding is what an OpBind makes of a memory window; see [memory.Binding]. The
// STag that it gives the window, to be advertised to the peer, is its field Window.
type Binding = memory.Binding

// An MW is a memory window (Verbs §7.10): an STag with which the peer of one queue
// pair reaches a part of a region. An OpBind makes it Valid, without a verb that
// needs privilege; what invalidates regions makes it Invalid again. It serves peers,
// and as the sink of our own RDMA Reads, but is no STag for a scatter/gather list.
//
// Methods may be called by any goroutine.
type MW struct {
	pd     *PD
	window *memory.Window
}

// AllocMW allocates a memory window, which is not bound (Verbs §9.2.6.7). The
// results besides success are ErrRNIC, ErrPD and ErrResources.
func (pd *PD) AllocMW() (*MW, error) {
	const verb = "allocate memory window"
	if err := pd.check(verb); err != nil {
		return nil, err
	}
	window, err := pd.rnic.table.AllocWindow(pd.mem)
	if err != nil {
		return nil, pd.rnic.memoryError(verb, err)
	}
	return &MW{pd: pd, window: window}, nil
}

// STag names the window to the peer, with the key that it was bound with last.
func (mw *MW) STag() memory.STag { return mw.window.STag() }

// Valid reports whether the window is bound.
func (mw *MW) Valid() bool { return mw.window.Valid() }

// PD returns the window's protection domain.
func (mw *MW) PD() *PD { return mw.pd }

// Binding is for an OpBind of the window to n octets of mr from off on, with other
// offsets than those of mr only if its ZeroBased is set. The key is another than
// that of the binding before, so that an STag which a peer remembers meets nothing.
func (mw *MW) Binding(mr *MR, off, n uint64, access memory.Access) Binding {
	stag := mw.STag()
	return Binding{
		Window: stag&^0xFF | memory.STag(stag.Key()+1), Region: mr.STag(), VA: mr.Base() + off, Length: n, Access: access,
	}
}

// Deallocate ends the window, bound or not (Deallocate STag, Verbs §9.2.6.4). When it
// returns no octet can move through its STag any more. It never waits for a peer.
// The results besides success are ErrRNIC and ErrSTag.
func (mw *MW) Deallocate() error {
	const verb = "deallocate STag"
	r := mw.pd.rnic
	if err := r.alive(verb); err != nil {
		return err
	}
	if err := r.table.DeallocateWindow(mw.window); err != nil {
		return r.memoryError(verb, err)
	}
	return nil
}

// MWAttributes are the attributes of a memory window (Verbs §9.2.6.8).
type MWAttributes struct {
	Index uint32 // STag index, the upper 24 bits of the STag
	Valid bool   // STag state: bound
	PD    *PD

	// If Valid:
	Key       uint8         // STag key
	Access    memory.Access // RemoteRead, RemoteWrite, RemoteAtomic
	QP        uint32        // QP ID of the queue pair whose peer may use it
	Region    uint32        // STag index of the region that it is bound to
	Base      uint64        // tagged offset of the first octet
	Length    uint64        // octets
	ZeroBased bool
}

// Query returns the attributes of the window (Query Memory Window). The results besides
// success are ErrRNIC and ErrSTag.
func (mw *MW) Query() (MWAttributes, error) { return mw.pd.rnic.QueryMW(mw.window.Index()) }

// QueryMW returns the attributes of the memory window with an STag index. The results besides
// success are ErrRNIC and ErrSTag.
func (r *RNIC) QueryMW(index uint32) (MWAttributes, error) {
	const verb = "query memory window"
	if err := r.alive(verb); err != nil {
		return MWAttributes{}, err
	}
	a, err := r.table.QueryWindow(index)
	if err != nil {
		return MWAttributes{}, r.memoryError(verb, err)
	}
	return MWAttributes{
		Index: a.Index, Valid: a.Valid, PD: r.pdOf(a.PD), Key: a.Key, Access: a.Access,
		QP: uint32(a.Stream), Region: a.Region, Base: a.Base, Length: a.Length, ZeroBased: a.ZeroBased,
	}, nil
}
