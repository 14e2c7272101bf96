package memory

import "github.com/weft-rdma/weft/ddp"

// Invalidate takes the region or window that stag names from Valid to Invalid
// (Verbs §7.8, §7.10.4). One already Invalid stays so, whatever the key. It returns
// when no octet can move through the STag any more; the caller must not hold
// it, on any of its Holders.
//
// stream and pd are those of the stream that asks. remote tells that its peer
// asked (Send with Invalidate): that needs a remote right on the STag.
//
// A fault means that nothing changed: FaultSTag, the STag is unknown or has
// another key; FaultAssociation, it is of another domain or stream;
// FaultAccess, it lacks the right. A region that is Shared, or to which windows are
// bound, gives FaultAssociation if remote asked, and else FaultSTag (Verbs §9.5.2).
func (t *Table) Invalidate(stag uint32, pd *PD, stream Stream, remote bool) ddp.Fault {
	g, fault := t.invalidate(STag(stag), pd, stream, remote)
	if fault == ddp.NoFault {
		<-g.drained
	}
	return fault
}

// invalidate is Invalidate without the wait for those who hold g.
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
		// Verbs §7.4.2: local rights alone give a peer no power over the STag. One
		// that is Invalid has no rights, and goes by its Remote Access Flag.
		return ddp.FaultAccess
	}
	return ddp.NoFault
}

// invalidable makes the checks of Verbs §7.10.6.3: a window that is Valid is its
// stream's, and one that is not is its domain's. It has remote rights always.
func (w *Window) invalidable(g *registration, pd *PD, stream Stream) ddp.Fault {
	if g.revoked() && w.pd != pd || !g.revoked() && g.stream != stream {
		return ddp.FaultAssociation
	}
	return ddp.NoFault
}
