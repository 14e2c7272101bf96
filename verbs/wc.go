// This file is the work completion.

package verbs

import "github.com/weft-rdma/weft/memory"

// A WC is a work completion (Verbs §9.3.2.1). With a Status other than
// Success only ID, Status, Op, QP and QPNum are defined, and Err says why.
type WC struct {
	ID     uint64 // of the work request
	QP     *QP    // nil if polled through a UserCQ
	Op     Op
	Status Status

	// Of receives only:
	Solicited      bool        // the message asked for an event
	HasInvalidated bool        // Invalidated is valid
	Bytes          uint32      // length of the message; 8 for Immediate Data
	Invalidated    memory.STag // the local STag that the message invalidated
	QPNum          uint32      // QP ID; of all completions
	Immediate      [8]byte     // of OpRecvImmediate

	slot uint64     // polling this frees the slots below this number
	wqe  *recvWQE   // or this receive, of a shared queue
	end  *streamEnd // of an error: why the stream ended
}

// retire frees what completions that were polled kept. Those of one queue are in its order, so that
// the last of several stands for the others.
func retire(wcs []WC) {
	for i := range wcs {
		wc := &wcs[i]
		wc.QPNum = wc.QP.num
		if i+1 < len(wcs) && wcs[i+1].follows(wc) {
			continue
		}
		if wc.receives() {
			wc.QP.rq.release(wc)
		} else {
			wc.QP.sq.release(wc.slot)
		}
	}
}

// follows reports that the completion is of the same queue as another, which is not shared.
func (wc *WC) follows(before *WC) bool {
	return wc.QP == before.QP && wc.wqe == nil && wc.receives() == before.receives()
}

// receives reports that the completion is one of a receive.
func (wc *WC) receives() bool { return wc.Op == OpRecv || wc.Op == OpRecvImmediate }
