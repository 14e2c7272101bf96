// This file invalidates STags (Verbs §7.8, §7.10.6.3).

package memory

import "github.com/weft-rdma/weft/ddp"

// Invalidate makes the region or window of stag Invalid (Verbs §7.8, §7.10.4). If it is
// Invalid already it stays so, whatever the key. Invalidate returns when no octet can
// move through the STag any more; the caller must not hold it with any Holder.
//
// stream and pd are those of the stream that asks. remote is set if its peer asks, by
// Send with Invalidate, for which the STag needs a remote right.
//
// After a fault nothing has changed. FaultSTag: the STag is unknown or has another key.
// FaultAssociation: it is of another domain or stream. FaultAccess: it lacks the right.
// For a region that is Shared or has windows bound, the fault is FaultAssociation if
// remote is set, else FaultSTag (Verbs §9.5.2).
func (t *Table) Invalidate(stag uint32, pd *PD, stream Stream, remote bool) ddp.Fault {
	g, fault := t.invalidate(STag(stag), pd, stream, remote)
	if fault == ddp.NoFault {
		g.await()
	}
	return fault
}

// invalidate is Invalidate without waiting for the holders of g.
func (t *Table) invalidate(stag STag, pd *PD, stream Stream, remote bool) (g *registration, fault ddp.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.dir.lookup(stag.Index())
	if o == nil {
		return nil, ddp.FaultSTag
	}
	g = o.current.Load()
	if g.stag != stag && !g.revoked() {
		return nil, ddp.FaultSTag
	}
	if r := o.region; r != nil {
		fault = r.invalidable(g, pd, stream, remote)
	} else {
		fault = o.window.invalidable(g, pd, stream)
	}
	if fault != ddp.NoFault {
		return nil, fault
	}
	return t.end(o), ddp.NoFault
}

// invalidable makes the checks of Verbs §7.8; g is the region's registration.
func (r *Region) invalidable(g *registration, pd *PD, stream Stream, remote bool) ddp.Fault {
	switch {
	case g.pd != pd, g.stream != 0 && g.stream != stream:
		return ddp.FaultAssociation
	case (r.shared || r.windows > 0) && remote:
		return ddp.FaultAssociation
	case r.shared, r.windows > 0:
		return ddp.FaultSTag
	case remote && !g.access.Remote() && !(g.revoked() && r.remote):
		// Verbs §7.4.2: with local rights only, a peer can't invalidate the STag. For
		// one that is Invalid, and has no rights, its Remote Access Flag decides.
		return ddp.FaultAccess
	}
	return ddp.NoFault
}

// invalidable makes the checks of Verbs §7.10.6.3: a Valid window belongs to its stream,
// an Invalid one to its domain. It always has remote rights.
func (w *Window) invalidable(g *registration, pd *PD, stream Stream) ddp.Fault {
	if g.revoked() && w.pd != pd || !g.revoked() && g.stream != stream {
		return ddp.FaultAssociation
	}
	return ddp.NoFault
}
