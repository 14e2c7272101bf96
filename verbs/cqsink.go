// This file passes completions to a queue of the consumer's instead of the CQ's ring.

package verbs

// A Sink receives the completions of a CQ, one a call, in order. It is for programs that
// keep completion queues of their own, for example in memory that they share with code in
// another language.
//
// A Sink reports whether it had room. A completion that it refuses is lost, as in a full
// CQ: the queue pairs attached end. When the Sink is called for a receive, that no longer
// occupies its queue. Another work request does so until the Sink returns; a post waits for
// that.
//
// Calls for one CQ are made one at a time, in the goroutine in which the work request
// ends, which may be that of PostSend or PostRecv. A Sink must not wait and must not call
// a verb. The WC is valid during the call only.
type Sink func(wc *WC) (ok bool)

// sinks reports whether completions go to a Sink.
func (cq *CQ) sinks() bool { return cq.cfg.Sink != nil }

// sink calls the Sink with a completion; needs mu. It copies the completion, so that those
// of a CQ without a Sink stay off the heap.
func (cq *CQ) sink(wc *WC) (ok bool) {
	cq.sinkWC = *wc
	cq.sinkWC.QPNum = wc.QP.num
	ok = cq.cfg.Sink(&cq.sinkWC)
	cq.sinkWC = WC{}
	return ok
}
