// This file counts credits, for either side of either direction (RFC 8166
// §3.3.1, RFC 5666 §3.3, §11).

package rpcrdma

// A window is a requester's account: how many calls it may have outstanding.
// It is 1 until the first valid reply has come (RFC 8166 §3.3.3). The caller
// locks.
type window struct {
	requested uint32 // what calls ask for; at least 1
	granted   uint32 // what the last reply granted; 0: no reply yet, stands for 1
	inflight  int    // calls sent and not replied to
	owed      int    // replies with Read lists whose RDMA_DONE was not sent yet
	done      int    // RDMA_DONEs that no grant came after
}

// open reports whether one more call may be sent.
//
// RFC 5666 §3.8: an RDMA_DONE takes a credit. A place is kept for it from the
// reply on that makes it necessary until the next grant. Those alone never
// close the window, else the grant that ends it would have nothing to come with.
func (w *window) open() bool {
	return w.inflight == 0 || uint64(w.inflight+w.owed+w.done) < uint64(w.size())
}

// size returns how many calls may be outstanding.
func (w *window) size() uint32 { return max(1, min(w.requested, w.granted)) }

// call counts a call that is sent.
func (w *window) call() { w.inflight++ }

// reply counts what ends a call: a reply or an RDMA_ERROR, which grants credits,
// and owes an RDMA_DONE if it has a Read list.
func (w *window) reply(credits uint32, owes bool) {
	w.inflight--
	w.grant(credits)
	if owes {
		w.owed++
	}
}

// drop counts a call that ends without a reply, because it was not sent or the connection
// has ended. An abandoned call that was sent stays in flight until its reply arrives, as
// the responder counts it.
func (w *window) drop() { w.inflight-- }

// grant takes the credits of a valid message of the responder. Zero is read as 1
// (RFC 8166 §3.3.1).
func (w *window) grant(credits uint32) {
	w.granted = usable(credits, w.requested)
	w.done = 0
}

// finish counts an RDMA_DONE that is sent.
func (w *window) finish() {
	w.owed--
	w.done++
}

// A grants is a responder's account: what its replies grant. The caller locks.
type grants struct {
	limit   uint32 // calls that there are receives for; at least 1
	pending uint32 // replies with Read lists whose RDMA_DONE has not come
}

// credits returns what a reply grants. It is never 0 (RFC 8166 §3.3.1): RDMA_DONEs
// that are outstanding reduce it, but not below 1 (RFC 5666 §11).
func (g *grants) credits() uint32 {
	if g.pending >= g.limit {
		return 1
	}
	return g.limit - g.pending
}

// usable returns how many of the credits granted by a peer may be used: at least one, since
// a grant of zero counts as one, and at most most (RFC 8166 §3.3.1).
func usable(credits, most uint32) uint32 { return max(1, min(credits, most)) }
