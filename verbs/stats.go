// This file is statistics, for administration and troubleshooting (Verbs §10.3, RFC
// 5042 §6.4.4). Counting takes no lock and no atomic operation of its own for a message:
// each count is guarded by the lock of its queue, which is held at that moment anyway.

package verbs

import (
	"errors"
	"maps"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/rdmap"
)

// Traffic counts messages and the octets of their payload.
type Traffic struct{ Messages, Octets uint64 }

func (t *Traffic) add(o Traffic) {
	t.Messages += o.Messages
	t.Octets += o.Octets
}

// QPStats count what a queue pair has done since it was created, over all its
// streams. The numbers only grow. They are collected one queue after the other,
// not at one instant.
type QPStats struct {
	// Work requests of the send queue that succeeded, signaled or not.
	Sends      Traffic // Sends of all kinds, and Immediate Data
	Writes     Traffic
	Reads      Traffic
	Atomics    Traffic
	LocalWork  uint64  // those that have nothing to do with the wire
	Received   Traffic // Sends of all kinds and Immediate Data that completed a receive
	PeerWrites Traffic // RDMA Writes of the peer's that were placed to their end
	PeerReads  Traffic // RDMA Reads of the peer's that were answered
	// PeerAtomics are those answered; EmptyWrites are among PeerWrites: a peer
	// that sends many wants to keep this side busy.
	PeerAtomics, EmptyWrites uint64

	Flushed uint64 // work requests of both queues that completed as Flushed
	Failed  uint64 // those that completed with another error

	// Posts that failed with ErrFull.
	FullSends, FullRecvs uint64

	TerminatesSent, TerminatesReceived uint64

	Streams uint64 // how often it entered RTS
	// How those that have ended did. Lost are those that were reset or broke
	// down, also while they were being closed.
	Closed, Terminated, TerminatedByPeer, Aborted, Lost uint64
}

func (s *QPStats) add(o *QPStats) {
	for _, t := range [...]struct {
		to   *Traffic
		from Traffic
	}{
		{&s.Sends, o.Sends}, {&s.Writes, o.Writes}, {&s.Reads, o.Reads}, {&s.Atomics, o.Atomics},
		{&s.Received, o.Received}, {&s.PeerWrites, o.PeerWrites}, {&s.PeerReads, o.PeerReads},
	} {
		t.to.add(t.from)
	}
	for _, n := range [...]struct {
		to   *uint64
		from uint64
	}{
		{&s.LocalWork, o.LocalWork}, {&s.PeerAtomics, o.PeerAtomics}, {&s.EmptyWrites, o.EmptyWrites},
		{&s.Flushed, o.Flushed}, {&s.Failed, o.Failed}, {&s.FullSends, o.FullSends}, {&s.FullRecvs, o.FullRecvs},
		{&s.TerminatesSent, o.TerminatesSent}, {&s.TerminatesReceived, o.TerminatesReceived}, {&s.Streams, o.Streams},
		{&s.Closed, o.Closed}, {&s.Terminated, o.Terminated}, {&s.TerminatedByPeer, o.TerminatedByPeer},
		{&s.Aborted, o.Aborted}, {&s.Lost, o.Lost},
	} {
		*n.to += n.from
	}
}

// WireStats count what the LLP below streams has carried, retransmissions of the transport
// left out: segments of DDP, which are FPDUs over MPA, and octets with all framing. They
// are 0 over an LLP that does not count.
type WireStats struct {
	SegmentsIn, SegmentsOut uint64
	OctetsIn, OctetsOut     uint64
}

func (w *WireStats) add(o WireStats) {
	w.SegmentsIn += o.SegmentsIn
	w.SegmentsOut += o.SegmentsOut
	w.OctetsIn += o.OctetsIn
	w.OctetsOut += o.OctetsOut
}

// wire returns what the LLP of a stream has counted.
func (c *connection) wire() (w WireStats) {
	if llp, ok := c.llp.(ddp.CountingLLP); ok {
		w.SegmentsIn, w.SegmentsOut, w.OctetsIn, w.OctetsOut = llp.Counts()
	}
	return w
}

// wire returns what the LLP of the present stream has counted.
func (q *QP) wire() WireStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.conn.Load(); c != nil {
		return c.wire()
	}
	return WireStats{}
}

// workKind is what a work request is counted as.
type workKind uint8

const (
	kindSend workKind = iota
	kindWrite
	kindRead
	kindAtomic
	kindLocal
	workKinds
)

// sendCounts are those of a send queue; its done lock.
type sendCounts struct {
	by              [workKinds]Traffic
	flushed, failed uint64
}

func (c *sendCounts) count(w *sendWQE) {
	switch w.status {
	case Success:
		t := &c.by[w.wr.Op.row().work]
		t.Messages++
		t.Octets += w.length
	case Flushed:
		c.flushed++
	default:
		c.failed++
	}
}

// recvCounts are those of a receive queue; the lock of its CQ.
type recvCounts struct {
	Traffic
	flushed, failed uint64
}

func (c *recvCounts) count(wc *WC) {
	switch wc.Status {
	case Success:
		c.Messages++
		c.Octets += uint64(wc.Bytes)
	case Flushed:
		c.flushed++
	default:
		c.failed++
	}
}

// Stats returns what the queue pair has done. It may be called at any time.
func (q *QP) Stats() QPStats {
	q.mu.Lock()
	s := q.past
	if c := q.conn.Load(); c != nil {
		s.addStream(&c.stream.Stats)
	}
	q.mu.Unlock()

	q.sq.post.Lock()
	s.FullSends = q.sq.full
	q.sq.post.Unlock()
	q.rq.post.Lock()
	s.FullRecvs = q.rq.full
	q.rq.post.Unlock()

	q.sq.done.Lock()
	sent := q.sq.counts
	q.sq.done.Unlock()
	cq := q.cfg.RecvCQ
	cq.mu.Lock()
	received := q.rq.counts
	cq.mu.Unlock()
	s.Sends, s.Writes, s.Reads, s.Atomics = sent.by[kindSend], sent.by[kindWrite], sent.by[kindRead], sent.by[kindAtomic]
	s.LocalWork = sent.by[kindLocal].Messages
	s.Received = received.Traffic
	s.Flushed, s.Failed = sent.flushed+received.flushed, sent.failed+received.failed
	return s
}

// addStream adds what RDMAP has counted.
func (s *QPStats) addStream(o *rdmap.Stats) {
	s.PeerWrites.add(Traffic{o.Writes.Load(), o.WriteOctets.Load()})
	s.PeerReads.add(Traffic{o.ReadsServed.Load(), o.ReadOctets.Load()})
	s.PeerAtomics += o.AtomicsServed.Load()
	s.EmptyWrites += o.EmptyWrites.Load()
	s.TerminatesSent += o.TerminatesOut.Load()
	s.TerminatesReceived += o.TerminatesIn.Load()
}

// ended counts the end of a stream that was in a state when it ended, by what
// the queue pair's Err says.
func (s *QPStats) ended(was State, graceful bool, err error) {
	var term *rdmap.TerminateError
	switch {
	case graceful:
		s.Closed++
	case was == Error:
		s.Aborted++
	case was == Terminate && errors.As(err, &term) && term.Remote:
		s.TerminatedByPeer++
	case was == Terminate:
		s.Terminated++
	default:
		s.Lost++
	}
}

// CQStats count what a CQ has seen since it was created. The numbers only grow.
type CQStats struct {
	Succeeded, Flushed, Failed uint64 // completions, by their status
	Lost                       uint64 // those of them that it could not take
	Overflows                  uint64 // how often that began; see EventCQOverflow
	Notifications              uint64 // requests for notification that were fulfilled
	MostUsed                   int    // entries that were in use at a time, at most
}

func (s *CQStats) add(o *CQStats) {
	s.Succeeded += o.Succeeded
	s.Flushed += o.Flushed
	s.Failed += o.Failed
	s.Lost += o.Lost
	s.Overflows += o.Overflows
	s.Notifications += o.Notifications
	s.MostUsed = max(s.MostUsed, o.MostUsed)
}

// Stats returns what the CQ has seen. It may be called at any time.
func (cq *CQ) Stats() CQStats {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	return cq.counts
}

// count counts a completion that comes in; needs mu.
func (cq *CQ) count(wc *WC) {
	switch wc.Status {
	case Success:
		cq.counts.Succeeded++
	case Flushed:
		cq.counts.Flushed++
	default:
		cq.counts.Failed++
	}
	if wc.Op.row().receives {
		wc.QP.rq.counts.count(wc)
	}
}

// RNICStats count what has happened on an RNIC since it was opened.
type RNICStats struct {
	QPs QPStats // of all queue pairs together, those destroyed included
	CQs CQStats // of all completion queues; MostUsed is the largest

	// Events are the asynchronous events, whether there was a handler or not.
	Events map[EventID]uint64
	// Limits says how often each limit made a verb fail, by the name of its
	// field in Limits; limits never met are not in it.
	Limits map[string]uint64

	// States are the queue pairs that exist, by their state; states that none is in are
	// not in it.
	States map[State]int

	// TerminatesSent and TerminatesReceived are the Terminate messages of streams that
	// have ended, by the code. Of received codes 64 are told apart, since peers choose
	// them; further ones are counted as OtherTerminates.
	TerminatesSent, TerminatesReceived map[TerminateCode]uint64

	Wire WireStats // of all streams together
}

// A TerminateCode names the error of a Terminate message (RFC 5040 §4.8).
type TerminateCode struct{ Layer, EType, Code uint8 }

// OtherTerminates stands in [RNICStats] for all received codes after the first 64. No
// message has it: layer and type have four bits each there.
var OtherTerminates = TerminateCode{0xFF, 0xFF, 0xFF}

// mostCodes limits the received codes that are told apart.
const mostCodes = 64

// ends counts the streams that have ended; RNIC.mu.
type ends struct {
	sent, received map[TerminateCode]uint64
	wire           WireStats
}

// countEnd counts the end of a stream, by its error.
func (r *RNIC) countEnd(c *connection, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends.wire.add(c.wire())
	var term *rdmap.TerminateError
	if !errors.As(why, &term) {
		return
	}
	at := TerminateCode{term.Layer, term.EType, term.Code}
	switch {
	case term.Remote:
		r.ends.receive(at)
	case c.stream.Stats.TerminatesOut.Load() > 0:
		r.ends.sent = countIn(r.ends.sent, at)
	}
}

// receive counts a Terminate message of a peer's.
func (e *ends) receive(at TerminateCode) {
	if _, known := e.received[at]; !known && len(e.received) >= mostCodes {
		at = OtherTerminates
	}
	e.received = countIn(e.received, at)
}

func countIn(m map[TerminateCode]uint64, at TerminateCode) map[TerminateCode]uint64 {
	if m == nil {
		m = make(map[TerminateCode]uint64)
	}
	m[at]++
	return m
}

// Stats returns what has happened on the RNIC. It may be called at any time,
// after Close, too.
func (r *RNIC) Stats() RNICStats {
	r.mu.Lock()
	s := RNICStats{
		QPs: r.pastQPs, CQs: r.pastCQs, Events: map[EventID]uint64{}, States: map[State]int{},
		TerminatesSent: maps.Clone(r.ends.sent), TerminatesReceived: maps.Clone(r.ends.received), Wire: r.ends.wire,
	}
	for id, n := range r.raised {
		if n > 0 {
			s.Events[EventID(id)] = n
		}
	}
	qps, cqs := make([]*QP, 0, len(r.qps)), make([]*CQ, 0, len(r.cqs))
	for _, q := range r.qps {
		qps = append(qps, q)
	}
	for cq := range r.cqs {
		cqs = append(cqs, cq)
	}
	r.mu.Unlock()
	for _, q := range qps {
		of := q.Stats()
		s.QPs.add(&of)
		s.Wire.add(q.wire())
		s.States[q.State()]++
	}
	for _, cq := range cqs {
		of := cq.Stats()
		s.CQs.add(&of)
	}
	r.refused.mu.Lock()
	s.Limits = maps.Clone(r.refused.by)
	r.refused.mu.Unlock()
	return s
}
