// This file is completions that go to the consumer's own queue in place of the
// CQ's ring.

package verbs

// A Sink takes the completions of a CQ, one call each, in their order. It is for
// programs that keep completion queues of their own: one in memory that is shared
// with code in another language, say.
//
// A Sink reports whether it has room. What it refuses is lost, as in a CQ that is
// full: the queue pairs attached end. With its return the work request is over for
// the RNIC and frees its place in its queue.
//
// Calls for one CQ come one at a time, in whatever goroutine the work request ends
// in, that of PostSend and PostRecv included. A Sink must not wait and must not
// call a verb. The WC is valid during the call only.
type Sink func(wc *WC) (ok bool)

// sink gives a completion to the Sink; needs mu. It copies the completion, so that
// those of a CQ without a Sink stay off the heap.
func (cq *CQ) sink(wc *WC) (ok bool) {
	cq.given = *wc
	cq.given.QPNum = wc.QP.num
	ok = cq.cfg.Sink(&cq.given)
	cq.given = WC{}
	return ok
}
