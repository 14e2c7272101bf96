// This file is the incoming half of a stream: segments become deliveries.

package rdmap

import (
	"errors"
	"github.com/weft-rdma/weft/ddp"
	"io"
)

// An inbound is the incoming half of a Stream. For each segment
//
//  1. AdmitTagged or AdmitUntagged checks version, opcode and the order of messages,
//  2. Buffer, at the first segment of an untagged message, readies its buffer,
//  3. PlaceTagged or PlaceUntagged finds the memory for the payload,
//  4. DeliverTagged or DeliverUntagged handles the message that it ends.
//
// All of it runs in the receiving goroutine: that of Reader, or one in Poll while
// Reader waits. There are no locks but those of the queues that it shares with the
// outgoing half.
type inbound struct {
	s        *Stream
	receiver *ddp.Receiver
	aside    *aside      // in front of it, or nil
	opened   bool        // a segment has arrived
	proven   bool        // and was in order: the peer is ready
	kick     bool        // there is something to send because of what arrived
	answered int         // requests of this side, since the last flush
	asked    int         // requests of the peer, since then
	expect   func()      // of the LLP, if it is a ddp.ExpectingLLP
	targets  RunTargets  // the ULP, if it is one
	receives RunReceives // the ULP, if it is one
	sends    sends
	alike    int  // Read Responses that PlaceAlike has placed and DeliverAlike has not delivered
	gated    bool // since Idle it has waited for the reportGate

	op         Opcode    // of the segment at hand
	invalidate uint32    // its Invalidate STag
	response   pending   // if op is OpReadResponse: what it answers
	got        uint64    // octets of the tagged message, with the segment at hand
	mismatch   ddp.Fault // and how it differs from that

	// The message in progress on queue 0.
	message Opcode
	rtr     bool // it is the empty Send that opens a peer-to-peer stream

	// Buffers of the messages that RDMAP takes itself.
	fixed     [maxFixed]byte // of messages of fixed length, which are one segment each
	terminate [terminateRoom]byte

	delivery Delivery

	arrivals arrivals // those that Stats does not count yet
}

// arrivals are messages that have arrived to their ends.
type arrivals struct{ messages, writes, octets, empty uint64 }

// count counts what has arrived, once for as many messages as nobody hears of: before the
// ULP hears of one, and before the reception may wait.
func (in *inbound) count() {
	a := &in.arrivals
	if a.messages == 0 {
		return
	}
	s := &in.s.Stats
	s.MessagesIn.Add(a.messages)
	if a.writes > 0 {
		s.Writes.Add(a.writes)
		s.WriteOctets.Add(a.octets)
	}
	if a.empty > 0 {
		s.EmptyWrites.Add(a.empty)
	}
	*a = arrivals{}
}

// terminateRoom is room for a Terminate header and whatever a peer may have put
// behind it, in octets.
const terminateRoom = 128

var (
	_ ddp.ULP          = (*inbound)(nil)
	_ ddp.BlockingULP  = (*inbound)(nil)
	_ ddp.JoiningULP   = (*inbound)(nil)
	_ ddp.RepeatingULP = (*inbound)(nil)
	_ ddp.QueueingULP  = (*inbound)(nil)
)

func (in *inbound) init(s *Stream) {
	in.s = s
	in.receiver = ddp.NewReceiver(s.rv, in)
	in.targets, _ = s.ulp.(RunTargets)
	in.receives, _ = s.ulp.(RunReceives)
	if llp, ok := s.llp.(ddp.ExpectingLLP); ok {
		in.expect = llp.Expect
	}
	in.setAside()
}

func (in *inbound) run() error {
	err := in.receive()
	in.Idle()
	if errors.Is(err, io.EOF) && in.unfinished() {
		return ErrUnfinished
	}
	return in.offence(err)
}

func (in *inbound) receive() error {
	if in.aside == nil {
		return in.s.llp.Receive(in.receiver)
	}
	return in.aside.end(in.s.llp.Receive(in.aside))
}

// unfinished reports whether a message has begun and not ended.
func (in *inbound) unfinished() bool {
	_, open := in.receiver.UnfinishedTagged()
	for qn := uint32(0); qn < ddp.Queues && !open; qn++ {
		_, open = in.receiver.UnfinishedUntagged(qn)
	}
	return open
}

// first reports whether this is the first segment, which opens the fence of a
// responder (RFC 5044 §7.1.2 rule 4). A later one proves that the first was in order.
func (in *inbound) first() (first bool) {
	if in.opened {
		in.prove()
		return false
	}
	in.opened, in.kick = true, true
	in.s.heard.Store(true)
	return true
}

// prove notes that the peer is ready: it has sent a segment that is in order and does
// not end the stream (RFC 6581 §8: an initiator that cannot go on sends a Terminate
// in place of its first message).
func (in *inbound) prove() {
	if !in.proven {
		in.proven = true
		close(in.s.ready)
	}
}

// admit checks version and opcode (RFC 5040 §7.2). RFC 7306's opcodes are
// unknown to the RDMA Consortium's version.
func (in *inbound) admit(version uint8, op Opcode, tagged bool, qn uint32) error {
	switch {
	case in.s.term.Load() != nil:
		return errEnded
	case in.s.closing.Load() && op != OpTerminate:
		return errClosing
	case version != in.s.rv:
		return errVersion(version, in.s.rv)
	case !op.Defined(), op.Tagged() != tagged, !tagged && op.Queue() != qn,
		op.Extension() && version == VersionConsortium:
		return errOpcode(op, tagged, qn)
	}
	return nil
}

// AdmitTagged checks a segment of an RDMA Write or Read Response.
func (in *inbound) AdmitTagged(h *ddp.Tagged, n int) error {
	in.first()
	version, op := ParseControl(h.RsvdULP)
	if err := in.admit(version, op, true, 0); err != nil {
		return err
	}
	next, open := in.receiver.UnfinishedTagged()
	if open {
		// RFC 5041 §4.1, §5.2: L ends a message, and until then its segments
		// follow each other in place.
		_, before := ParseControl(next.RsvdULP)
		if before != op || n > 0 && (h.STag != next.STag || h.TO != next.TO) {
			return errNotLast(before)
		}
	}
	in.op = op
	if !open {
		in.got = 0
	}
	if op != OpReadResponse {
		in.got += uint64(n)
		return nil
	}
	return in.admitResponse(h, n)
}

// admitResponse compares a Read Response with the oldest Read that waits: STag, offset
// and length must be those requested. Otherwise a response would be a Write in
// disguise (RFC 5040 §5.2.2, RFC 5042 §5.4).
func (in *inbound) admitResponse(h *ddp.Tagged, n int) error {
	p := &in.response
	if !in.s.responses.front(p) || p.opcode != OpReadRequest {
		return errUnasked(OpReadResponse)
	}
	// Counted, and not taken from the TO: that of an empty segment may be any.
	at := p.sinkTO + in.got
	in.got += uint64(n)
	in.mismatch = ddp.NoFault
	switch {
	case n == 0:
	case h.STag != p.sinkSTag:
		in.mismatch = ddp.FaultSTag
	case h.TO != at, in.got > uint64(p.length):
		in.mismatch = ddp.FaultBounds
	}
	switch {
	case in.mismatch != ddp.NoFault: // PlaceTagged reports it
	case h.Last && in.got < uint64(p.length):
		return errShortResponse(in.got, p.length)
	case !h.Last && in.got == uint64(p.length):
		return errNotLast(OpReadResponse)
	}
	return nil
}

// Joins is AdmitTagged for a segment whose predecessors are not in place yet (see
// [ddp.JoiningULP]). What it does not let join is admitted, or refused, by itself.
func (in *inbound) Joins(h *ddp.Tagged, n int) bool {
	if in.op != OpReadResponse {
		return true
	}
	got := h.TO - in.response.sinkTO + uint64(n)
	return got <= uint64(in.response.length) && h.Last == (got == uint64(in.response.length))
}

// AdmitUntagged checks a segment of any other message.
func (in *inbound) AdmitUntagged(h *ddp.Untagged, n int) error {
	first := in.first()
	version, op, invalidate := ParseControlUntagged(h.RsvdULP)
	if err := in.admit(version, op, false, h.QN); err != nil {
		return err
	}
	in.op, in.invalidate = op, invalidate
	if want, fixed := op.fixedLength(); fixed && h.MO == 0 {
		// One segment each: MULPDU is never below 128 (RFC 5044 §4.5).
		if n != want {
			return errLength(op, n, want)
		}
		if !h.Last {
			return errNotLast(op)
		}
	}
	if h.QN != QueueSend {
		return nil
	}
	if _, open := in.receiver.UnfinishedUntagged(QueueSend); open {
		if op != in.message {
			return errNotLast(in.message)
		}
		return nil
	}
	in.message = op
	in.rtr = first && in.mayOpen(op, n == 0 && h.Last)
	return nil
}

// mayOpen reports that a first message, empty or not, is the Send that opens a peer-to-peer
// stream.
func (in *inbound) mayOpen(op Opcode, empty bool) bool {
	return op == OpSend && empty && !in.s.cfg.Initiator && in.s.cfg.RTR&RTRSend != 0
}

// PlaceTagged finds the memory for a segment of a Write or Read Response.
func (in *inbound) PlaceTagged(dst [][]byte, h *ddp.Tagged, n int) ([][]byte, ddp.Fault) {
	if in.op == OpWrite {
		return in.s.ulp.WriteTarget(dst, h.STag, h.TO, n)
	}
	if in.mismatch != ddp.NoFault {
		return dst, in.mismatch
	}
	return in.s.ulp.ReadSink(dst, h.STag, h.TO, n)
}

// WouldBlock reports that Buffer would block until a receive is posted.
func (in *inbound) WouldBlock(qn uint32) bool {
	q, ok := in.s.ulp.(BlockingReceiveQueue)
	return ok && qn == QueueSend && q.WouldBlock()
}

// Buffer finds the buffer for the next message of a queue: a posted receive, or
// one of RDMAP's own.
func (in *inbound) Buffer(qn, _ uint32) (size uint64, ok bool, err error) {
	switch qn {
	case QueueSend:
		if in.rtr {
			return 0, true, nil // RFC 6581 §9.2: completes nothing
		}
		in.prove() // the ULP may post receives only when the stream is ready
		size, ok = in.s.ulp.Receive()
		if n, fixed := in.message.fixedLength(); fixed {
			size = uint64(n) // goes into the completion, not into the buffer
		}
		return size, ok, nil
	case QueueRequest:
		if ird, full := in.s.requests.full(); full {
			return 0, false, errTooManyRequests(ird)
		}
		return uint64(len(in.fixed)), true, nil
	case QueueTerminate:
		return uint64(len(in.terminate)), true, nil
	default:
		n, _ := in.op.fixedLength()
		ok = in.s.responses.front(&in.response) && in.response.opcode == in.op.answers()
		return uint64(n), ok, nil
	}
}

// PlaceUntagged finds the memory for a segment in that buffer.
func (in *inbound) PlaceUntagged(dst [][]byte, h *ddp.Untagged, n int) ([][]byte, error) {
	own := in.fixed[:]
	switch _, fixed := in.op.fixedLength(); {
	case h.QN == QueueTerminate:
		own = in.terminate[:]
	case !fixed:
		return in.s.ulp.Scatter(dst, uint64(h.MO), n)
	}
	return append(dst, own[h.MO:int(h.MO)+n]), nil
}

// Unwritable ends the stream because of memory of PlaceUntagged. That of the queues
// which RDMAP serves itself can be written.
func (in *inbound) Unwritable(h *ddp.Untagged, cause error) error {
	if h.QN != QueueSend {
		return errCatastrophic(cause)
	}
	return in.s.ulp.Unwritable(cause)
}

// Release ends the hold of memory in the middle of a segment.
func (in *inbound) Release() { in.s.ulp.Release() }

// DeliverTagged completes a Read when its response is in place. A Write is not
// delivered to anyone (RFC 5040 §5.1).
func (in *inbound) DeliverTagged(h *ddp.Tagged, n int) error {
	in.arrivals.messages++
	in.prove()
	if in.op == OpWrite {
		in.wrote(h, n)
		return nil
	}
	if err := in.respond(0); err != nil {
		return err
	}
	in.pipeline()
	return nil
}

// wrote deals with the end of an RDMA Write, whose last segment has n octets.
func (in *inbound) wrote(h *ddp.Tagged, n int) {
	in.s.arrived(false)
	in.arrivals.writes++
	in.arrivals.octets += in.got
	if n == 0 {
		in.arrivals.empty++
	}
	if in.got == 0 {
		in.signed(h)
	}
}

// longestRun and shortestRun bound how many answers are handled before the next requests
// are sent.
const longestRun, shortestRun = 128, 4

// pipeline sends more requests after half of the answers that may be outstanding: the
// peer works on them while this side works on the other answers. Otherwise all would go to
// and fro in one batch, and one side would wait for the other. The peer's requests are
// answered when all that has come is dealt with: before that it can be seen whether they
// are too many.
func (in *inbound) pipeline() {
	if in.runEnds(0) {
		in.flush()
	}
}

// runEnds reports that the next requests are due, after n more answers.
func (in *inbound) runEnds(n int) bool {
	return in.answered+n >= min(longestRun, max(in.s.ORD()/2, shortestRun))
}

// signed reports the Signature of an empty Write.
func (in *inbound) signed(h *ddp.Tagged) {
	signed := in.s.cfg.Signed
	if signed != nil && signed(Signature{h.STag, h.TO}) {
		in.s.nudges.Store(true)
		in.kick = true
	}
}

// respond completes the oldest Read or atomic of this side.
func (in *inbound) respond(value uint64) error {
	p := &in.response
	in.s.responses.pop()
	defer in.s.responses.reported()
	in.answered++
	in.kick = true // ORD or a fence may have held something back
	if p.rtr {
		return nil
	}
	return in.s.ulp.Responded(p.ticket, value)
}

// DeliverUntagged deals with a whole message.
func (in *inbound) DeliverUntagged(h *ddp.Untagged, length uint32) error {
	in.arrivals.messages++
	if h.QN == QueueSend {
		in.count()
		in.s.arrived(false)
	}
	if err := handlings[in.op].deliver(in, length); err != nil {
		return err
	}
	if h.QN == QueueAtomicResponse {
		in.pipeline()
	}
	return nil
}

// deliverRequest checks a Read Request or Atomic Request and puts it in the
// queue of those to be answered.
func (in *inbound) deliverRequest(length uint32) error {
	r := in.s.requests.back()
	header, n := in.receiver.Offending()
	r.opcode, r.sent, r.length = in.op, 0, n
	copy(r.header[:], header)
	if err := services[in.op].parse(in, r, in.fixed[:length]); err != nil {
		return err
	}
	in.s.requests.commit()
	in.asked++
	in.s.arrived(true)
	in.kick = true
	in.prove()
	return nil
}

// terminated ends the reception with the peer's Terminate message.
func (in *inbound) terminated(length uint32) error {
	in.s.Stats.TerminatesIn.Add(1)
	return remoteTerminate(in.terminate[:length])
}

// delivered hands a message to the ULP, after what was sent before it.
func (in *inbound) delivered() {
	if !in.gated {
		in.gated = true
		in.s.out.gate.wait(in.s.ulp.Release)
	}
	in.s.ulp.Delivered(&in.delivery)
}

// Idle releases memory and sends what the segments gave reason to.
func (in *inbound) Idle() {
	in.flush()
}

// flush is Idle in the middle of what has arrived.
func (in *inbound) flush() {
	in.count()
	more := in.expectsMore()
	in.gated, in.answered, in.asked = false, 0, 0
	in.s.ulp.Idle()
	if in.kick {
		in.kick = false
		in.s.Kick()
	}
	if more {
		in.expect()
	}
}

// expectsMore reports that the peer is about to send again: it has answered requests of this
// side and owes other answers, or has asked for several things at a time. One request at a
// time is no reason: both sides may be idle for long between two.
func (in *inbound) expectsMore() bool {
	return in.expect != nil && (in.asked > 1 || in.answered > 0 && in.s.responses.len() > 0)
}
