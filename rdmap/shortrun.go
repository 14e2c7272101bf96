// This file sends short messages several at a time: Writes, Sends, Read Requests, and Read
// Responses. One by one each would pass all layers for itself, which takes longer than what is
// done with its octets.

package rdmap

import (
	"sync"

	"github.com/weft-rdma/weft/ddp"
)

// shortPayload is how many octets of payload a message in a run has at most. Others gain little.
const shortPayload = 448

// A shortRun is what an outbound needs for runs of short messages.
type shortRun struct {
	queue   RunQueue   // the ULP, if it is one
	sources RunSources // the ULP, if it is one
	*runSpace
	// appending is set while memory of the ULP is appended, and stays so if that faults. Then
	// single has the messages of this batch go one by one, which shows the one at fault.
	appending bool
	single    bool
}

// A runSpace is the memory for a run. It comes from the pool and goes back there.
type runSpace struct {
	run    ddp.Run
	reads  [ddp.RunLength]ReadRequest
	bodies [ddp.RunLength * ReadRequestLen]byte // of Read Requests
}

var runSpaces = sync.Pool{New: func() any { return new(runSpace) }}

func (w *shortRun) init(u ULP) {
	w.queue, _ = u.(RunQueue)
	if w.queue != nil {
		w.sources, _ = u.(RunSources)
	}
}

func (w *shortRun) begin() { w.single = false }

// next returns an empty run.
func (w *shortRun) next() *ddp.Run {
	if w.runSpace == nil {
		w.runSpace = runSpaces.Get().(*runSpace)
	}
	w.run.N = 0
	return &w.run
}

// end returns the memory to the pool.
func (w *shortRun) end() {
	if w.runSpace != nil {
		clear(w.run.Payloads[:]) // do not keep the ULP's memory
		runSpaces.Put(w.runSpace)
		w.runSpace = nil
	}
}

// appendRun appends messages that follow the one at hand, whose last segment was appended, and
// are of its kind. It reports whether there were any. What has to be looked at between messages
// has them go one by one.
func (o *outbound) appendRun() bool {
	s, w := o.s, &o.short
	switch {
	case o.ddp.Active(), w.single, !o.ddp.Room(), s.cfg.Hold.Full():
		return false
	case s.closing.Load(), s.nudges.Load(), s.term.Load() != nil:
		return false
	}
	switch o.msg.opcode {
	case OpReadResponse:
		return o.appendAnswers()
	case OpWrite, OpSend, OpSendSE:
		return o.msg.kind == kindOperation && o.mayRun() && o.appendOperations()
	case OpReadRequest:
		return o.msg.kind == kindQuestion && o.mayRun() && o.appendReads()
	}
	return false
}

// mayRun reports that operations may go in runs: there are some, none has to wait for others, and
// no answer is due.
func (o *outbound) mayRun() bool {
	q := o.short.queue
	return q != nil && !o.stalled && !o.s.requests.any() && q.Waiting()
}

// appendOperations appends Writes or Sends.
func (o *outbound) appendOperations() bool {
	s, w := o.s, &o.short
	run, frame, op := w.next(), o.ddp.Appended(), o.msg.opcode
	s.cfg.Hold.SetFrames(frame, frame)
	ticket := w.queue.ShortRun(op, run, min(shortPayload, o.ddp.RunRoom()))
	if run.N == 0 {
		s.cfg.Hold.Truncate(frame) // it may have been looked up
		return false
	}
	w.appending = true
	if op == OpWrite {
		o.ddp.AppendTaggedRun(Control(s.rv, op), run)
	} else {
		o.ddp.AppendUntaggedRun(ControlUntagged(s.rv, op, 0), QueueSend, run)
	}
	w.appending = false
	w.queue.Took(ticket + uint64(run.N))
	o.inflight.pushOperations(frame, ticket, run.N)
	o.finished.messages += uint64(run.N)
	for _, p := range run.Pieces() {
		o.unsent += len(p)
	}
	return true
}

// appendReads appends Read Requests, as far as ORD allows.
func (o *outbound) appendReads() bool {
	s, w := o.s, &o.short
	ord, full := s.responses.full()
	if full || o.ddp.RunRoom() < ReadRequestLen {
		return false
	}
	run := w.next()
	ticket, n := w.queue.Reads(w.reads[:min(ord-s.responses.len(), ddp.RunLength)])
	if n == 0 {
		return false
	}
	run.N = n
	for i := range w.reads[:n] {
		run.Payloads[i] = w.reads[i].Append(w.bodies[i*ReadRequestLen:][:0:ReadRequestLen])
	}
	msn := o.ddp.AppendUntaggedRun(ControlUntagged(s.rv, OpReadRequest, 0), QueueRequest, run)
	for i := range w.reads[:n] {
		w.reads[i].wait(s.responses.back(), ticket+uint64(i), msn+uint32(i))
		s.responses.commit()
	}
	w.queue.Took(ticket + uint64(n))
	o.finished.messages += uint64(n)
	o.unsent += n * ReadRequestLen
	return true
}

// appendAnswers appends Read Responses, if no operation of the ULP waits for its turn.
func (o *outbound) appendAnswers() bool {
	s, w := o.s, &o.short
	if w.sources == nil || !s.requests.any() || !o.stalled && w.queue.Waiting() {
		return false
	}
	run, frame := w.next(), o.ddp.Appended()
	s.cfg.Hold.SetFrames(frame, frame)
	o.sources(run, min(shortPayload, o.ddp.RunRoom()))
	if run.N == 0 {
		s.cfg.Hold.Truncate(frame)
		return false
	}
	w.appending = true
	o.ddp.AppendTaggedRun(Control(s.rv, OpReadResponse), run)
	w.appending = false
	s.cfg.Hold.Truncate(frame) // all is copied
	s.requests.cut += uint32(run.N)
	f := &o.finished
	f.messages += uint64(run.N)
	f.reads += uint64(run.N)
	for _, p := range run.Pieces() {
		f.octets += uint64(len(p))
		o.unsent += len(p)
	}
	return true
}

// sources fills in a run with what the peer's oldest requests ask for: Reads of 1 to most octets,
// whose memory is in one piece.
func (o *outbound) sources(run *ddp.Run, most int) {
	s := o.s
	for run.N < ddp.RunLength {
		r := s.requests.ahead(run.N)
		if r == nil || r.opcode != OpReadRequest || uint64(r.read.Size)-1 >= uint64(most) {
			return
		}
		n := int(r.read.Size)
		if run.N == 0 {
			pieces, f := s.ulp.Source(run.Payloads[:0], r.read.SourceSTag, r.read.SourceTO, n)
			if f != ddp.NoFault || len(pieces) != 1 {
				return // it is answered, or refused, by itself
			}
			run.Payloads[0] = pieces[0]
		} else if run.Payloads[run.N] = o.short.sources.AnotherSource(r.read.SourceSTag, r.read.SourceTO, n); run.Payloads[run.N] == nil {
			return
		}
		run.Targets[run.N] = ddp.Target{STag: r.read.SinkSTag, TO: r.read.SinkTO}
		run.N++
	}
}

// dropRun drops a run, memory of which cannot be read. What it was made of is still in its queue.
func (o *outbound) dropRun() {
	w := &o.short
	w.appending, w.single = false, true
	frame := o.ddp.Appended()
	o.ddp.Truncate(frame)
	o.s.cfg.Hold.Truncate(frame)
}
