// This file sends short RDMA Writes several at a time. One by one each would pass all layers for
// itself, which takes longer than what is done with its octets.

package rdmap

import (
	"sync"

	"github.com/weft-rdma/weft/ddp"
)

// runPayload is how many octets of payload a Write in a run has at most. Others gain little.
const runPayload = 448

// A writeRun is what an outbound needs for runs of Writes.
type writeRun struct {
	queue WriteQueue     // the ULP, if it is one
	run   *ddp.TaggedRun // from the pool; nil if this batch has none
	// appending is set while run is appended, and stays so if its memory faults. Then single
	// has the Writes of this batch go one by one, which shows the one at fault.
	appending bool
	single    bool
}

var taggedRuns = sync.Pool{New: func() any { return new(ddp.TaggedRun) }}

func (w *writeRun) begin() { w.single = false }

// end returns the memory to the pool.
func (w *writeRun) end() {
	if w.run != nil {
		clear(w.run.Payloads[:]) // do not keep the ULP's memory
		taggedRuns.Put(w.run)
		w.run = nil
	}
}

// appendWrites appends Writes that follow one, and reports whether there were any. What has to be
// looked at between messages has them go one by one.
func (o *outbound) appendWrites() bool {
	s, w := o.s, &o.writes
	switch {
	case o.msg.opcode != OpWrite, o.msg.kind != kindOperation, w.queue == nil, w.single:
		return false
	case o.ddp.Active(), o.stalled, !o.ddp.Room(), s.cfg.Hold.Full():
		return false
	case s.closing.Load(), s.nudges.Load(), s.term.Load() != nil, s.requests.any():
		return false
	}
	if w.run == nil {
		w.run = taggedRuns.Get().(*ddp.TaggedRun)
	}
	frame := o.ddp.Appended()
	s.cfg.Hold.SetFrames(frame, frame)
	w.run.N = 0
	ticket := w.queue.Writes(w.run, min(runPayload, o.ddp.RunRoom()))
	n := w.run.N
	if n == 0 {
		s.cfg.Hold.Truncate(frame) // it may have been looked up
		return false
	}
	w.appending = true
	o.ddp.AppendRun(Control(s.rv, OpWrite), w.run)
	w.appending = false
	w.queue.Took(ticket + uint64(n))
	o.inflight.pushOperations(frame, ticket, n)
	o.finished.messages += uint64(n)
	for _, p := range w.run.Pieces() {
		o.unsent += len(p)
	}
	return true
}

// dropWrites drops a run, memory of which cannot be read. Its Writes are still in the queue.
func (o *outbound) dropWrites() {
	w := &o.writes
	w.appending, w.single = false, true
	frame := o.ddp.Appended()
	o.ddp.Truncate(frame)
	o.s.cfg.Hold.Truncate(frame)
}
