// This file is the outgoing half of a stream: messages become segments, and segments batches.

package rdmap

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/pages"
)

// An outbound is the outgoing half of a Stream.
//
//  1. Kick raises the bell. The caller that raises it from 0 owns the half.
//  2. The owner gathers a batch: a Terminate message before all else, then responses
//     to the peer and operations of the ULP in turns, one whole message at a time.
//  3. It writes the batch, and reports to the ULP which operations have left.
//  4. It repeats this until nothing is left to send and the bell did not move: then it
//     sets the bell to 0. If it would have to wait, or has sent its budget, it hands the
//     half over to TakeOver, in a goroutine that may wait.
//
// Locking: ownership is the lock. The mutex owner is held by the owner while it works,
// only so that Stop can wait for it and Kick never does. Fields above it may be used
// by any goroutine, those below by the owner.
type outbound struct {
	s *Stream

	// bell counts the calls of Kick since the half became free; it is 0 when
	// nobody owns it. The owner leaves only if no call came in meanwhile.
	bell    atomic.Uint64
	handoff chan struct{} // passes ownership to Writer, without Config.HandOver
	owner   sync.Mutex    // held by the owner while it is at work, for Stop

	// All below belongs to the owner.
	ddp       ddp.Sender
	msg       message   // the message being cut into segments, if the sender is Active
	op        Operation // taken off the send queue but waiting for ORD or a fence, if stalled
	stalled   bool
	answers   bool // the peer's requests come next; they take turns with the send queue
	rtr       bool // the ready-to-receive message is still to be sent
	dead      bool // nothing more will be sent
	exhausted bool // gather ended because there was no other message to start
	reported  bool // Config.PeerClosed has been called
	opened    bool // Config.Opened has been called, if there is one
	inflight  inflight
	frame     uint64   // number of the first segment of the run at hand
	pieces    [][]byte // payload of the run, else empty
	short     shortRun
	unsent    int      // octets of payload in the batch, at most
	finished  finished // messages cut to their ends that Stats does not count yet
	gate      reportGate
}

// A message is what is being sent.
type message struct {
	kind   messageKind
	opcode Opcode
	ticket uint64  // of our own operations
	body   []byte  // RDMAP header or payload of a message that has no other
	req    request // of answers: what is being answered
	fixed  [maxFixed]byte
}

type messageKind uint8

const (
	kindOperation messageKind = iota // Send, Write, Immediate Data: complete when written
	kindQuestion                     // Read Request, Atomic Request: complete when answered
	kindAnswer                       // Read Response, Atomic Response
	kindRTR                          // ready-to-receive message, or a nudge: no operation of the ULP
	kindTerminate                    // the last one
)

// budget is how many batches a goroutine with other work (a poster, the receiver) sends
// before it hands over.
const budget = 1

func (o *outbound) init(s *Stream) {
	o.s = s
	o.ddp.Init(s.llp, s.cfg.Hold)
	o.short.init(s.ulp)
	o.rtr = s.cfg.Initiator && s.cfg.RTR != 0
	if s.cfg.HandOver == nil {
		o.handoff = make(chan struct{}, 1)
		s.cfg.HandOver = func() { o.handoff <- struct{}{} }
	}
}

// Kick sends what there is to send, as far as that needs no waiting, in the
// caller's goroutine, and leaves the rest to TakeOver. It may be called by any
// goroutine at any time.
func (s *Stream) Kick() {
	o := &s.out
	if o.bell.Add(1) != 1 {
		return // the owner looks again before it leaves
	}
	if o.ddp.CanTry() {
		o.run(false)
		return
	}
	o.handOver()
}

// KickLater is Kick for a caller that is about to give the ULP more to send: TakeOver
// sends all of it together.
func (s *Stream) KickLater() {
	if s.out.bell.Add(1) == 1 {
		s.out.handOver()
	}
}

// handOver has TakeOver called, unless nothing is sent any more.
func (o *outbound) handOver() {
	o.owner.Lock()
	defer o.owner.Unlock()
	if !o.dead {
		o.s.cfg.HandOver()
	}
}

// TakeOver sends what Kick could not send without waiting: Config.HandOver has it
// called. It returns when nothing is left to be sent.
func (s *Stream) TakeOver() { s.out.run(true) }

// Writer calls TakeOver when it is due, until Stop, for a Config without HandOver.
func (s *Stream) Writer() {
	for {
		select {
		case <-s.out.handoff:
			s.TakeOver()
		case <-s.done:
			return
		}
	}
}

// run sends until there is nothing to send (then the half becomes free), the
// half is dead (then it stays owned, so that nobody tries again), or waiting is
// needed (then ownership is handed over).
func (o *outbound) run(wait bool) {
	o.owner.Lock()
	defer o.owner.Unlock()
	for batches := 0; ; batches++ {
		if o.dead {
			return
		}
		seen := o.bell.Load()
		done, err := o.step(wait)
		switch {
		case err != nil:
			o.dead = true
			o.s.cfg.Ended(err)
			return
		case o.dead:
			o.s.cfg.Ended(o.ddp.CloseWrite())
			return
		case (done == free || done == all) && o.bell.CompareAndSwap(seen, 0):
			return
		case done == blocked, done != free && !wait && batches >= budget:
			o.s.cfg.HandOver() // the lock is held: see handOver
			return
		}
	}
}

// What a step came to.
type progress uint8

const (
	free    progress = iota // there was nothing to send
	all                     // a batch was written, and nothing is left to send
	more                    // a batch was written: there may be more
	blocked                 // the transport takes no more without waiting
)

// step gathers a batch and writes it.
func (o *outbound) step(wait bool) (progress, error) {
	s := o.s
	if s.stopped.Load() {
		return free, errStopped
	}
	// What is asked for while gathering is for the next step to heed.
	ending := s.closing.Load() || s.term.Load() != nil
	peerClosed := s.peerClosed.Load() && !o.reported
	if o.gather() {
		return o.idle(ending, peerClosed)
	}
	left := !o.exhausted || ending || peerClosed
	drained, started, err := o.write(wait)
	switch {
	case err != nil:
		return free, err
	case !drained:
		return blocked, nil
	}
	if o.inflight.terminated {
		o.dead = true
		s.Stats.TerminatesOut.Add(1)
	}
	if left || started || s.term.Load() != nil {
		return more, nil
	}
	return all, nil
}

// idle is a step that has nothing to write. The half dies if the stream is ending.
func (o *outbound) idle(ending, peerClosed bool) (progress, error) {
	s := o.s
	switch {
	case peerClosed:
		o.reported = true
		s.cfg.PeerClosed()
		return more, nil
	case ending:
		// A Terminate that may not be sent, because the peer's first
		// message has not come, is not waited for. The peer would take FIN
		// for a graceful close: the LLP stream is to be reset.
		if s.term.Load() != nil && o.ddp.Fenced() {
			return free, errUnreported
		}
		o.dead = true
	}
	return free, nil
}

// write writes the batch, or without wait as much of it as the transport takes. more reports
// that there may be more to send: operations that had to wait for others to leave, or what
// follows from memory that could not be sent.
func (o *outbound) write(wait bool) (drained, more bool, err error) {
	for {
		drained, started, err := o.flush(wait)
		more = more || started
		switch {
		case err != nil:
			if err := o.flushFailed(err); err != nil {
				return false, more, err
			}
			more = true
		case drained || !wait:
			return drained, more, nil
		}
		// Some has left, and is accounted for.
	}
}

var (
	errStopped    = errors.New("rdmap: stream stopped")
	errUnreported = errors.New("rdmap: stream ended before the peer's first message: it cannot be told why")
)

// flushFailed deals with an error of Flush: those of memory concern the segments that
// refer to it, and not those before.
func (o *outbound) flushFailed(err error) error {
	s := o.s
	var unreadable *ddp.UnreadableError
	switch {
	case err == ddp.ErrRevoked:
		segment := s.cfg.Hold.Revoked()
		if segment < o.ddp.Written() {
			return nil // all that referred to that memory has left
		}
		return o.damaged(segment, ddp.FaultSTag, errRevoked)
	case errors.As(err, &unreadable):
		return o.damaged(unreadable.Segment, ddp.FaultMemory, &MemoryError{unreadable.Err})
	}
	return err
}

// flush writes the batch, and reports which operations have left. started is what account
// returns.
func (o *outbound) flush(wait bool) (drained, started bool, err error) {
	small := o.unsent <= smallBatch && o.ddp.CanTry()
	if small {
		o.gate.close()
		drained, err = o.ddp.Flush(false)
		started = o.account()
		o.gate.open()
	}
	if !drained && err == nil && (wait || !small) {
		drained, err = o.ddp.Flush(wait)
		started = o.account() || started
	}
	if drained {
		o.unsent = 0
	}
	return drained, started, err
}

// account reports to the ULP which operations the transport has taken over. It returns
// whether others may start now.
func (o *outbound) account() (more bool) {
	written := o.ddp.Written()
	if written > 0 && !o.opened {
		o.opened = true
		if o.s.cfg.Opened != nil {
			o.s.cfg.Opened()
		}
	}
	o.s.cfg.Hold.Done(written)
	if ticket, any := o.inflight.written(written); any {
		return o.s.ulp.Sent(ticket)
	}
	return false
}

// gather appends segments until the batch is full or there is nothing to send,
// and reports whether nothing at all waits to be written.
func (o *outbound) gather() (empty bool) {
	if o.ddp.Fenced() {
		return true
	}
	o.exhausted = false
	o.short.begin()
	for more := true; more && o.ready(); {
		if o.msg.body != nil {
			more = o.segment() // without a guard: it reads no memory of the ULP
			for more && o.msg.kind == kindQuestion && o.appendRun() {
			}
			continue
		}
		fault := o.fill()
		more = fault != nil && o.unreadable(fault)
	}
	o.s.cfg.Hold.Release()
	o.short.end()
	o.count()
	return o.ddp.Empty()
}

// finished are messages that have been cut to their ends.
type finished struct{ messages, reads, octets, atomics uint64 }

// count counts the messages that have been finished, once for all of a batch, and frees the
// places of the requests that they answer.
func (o *outbound) count() {
	f, s := &o.finished, &o.s.Stats
	if f.messages == 0 {
		return
	}
	s.MessagesOut.Add(f.messages)
	if f.reads > 0 {
		s.ReadsServed.Add(f.reads)
		s.ReadOctets.Add(f.octets)
	}
	if f.atomics > 0 {
		s.AtomicsServed.Add(f.atomics)
	}
	*f = finished{}
	o.s.requests.free()
}

// ready reports whether a segment is to be appended now: the next one of the message that
// is being sent, or the first one of a message that ready starts.
func (o *outbound) ready() bool {
	s := o.s
	for o.ddp.Room() && !s.cfg.Hold.Full() && !s.abandoned.Load() {
		// A Terminate goes out at the next boundary of a segment (Verbs §6.4).
		if t := s.term.Load(); t != nil && (!o.ddp.Active() || o.msg.kind != kindTerminate) {
			if o.inflight.terminated {
				return false
			}
			o.startTerminate(t)
		}
		if o.ddp.Active() {
			return true
		}
		if !o.choose() {
			o.exhausted = true
			return false
		}
	}
	return false
}

// fill appends a segment, and others while ready allows it. The fault is that of the
// memory of the segment at hand: one guard serves for all of them.
func (o *outbound) fill() (fault error) {
	defer pages.CatchIn(&fault, o.reading, pages.Trap())
	for o.segment() {
		for o.appendRun() {
		}
		if !o.ready() {
			break
		}
	}
	return nil
}

// reading returns the memory that is being appended.
func (o *outbound) reading() [][]byte {
	if o.short.appending {
		return o.short.run.Pieces()
	}
	return o.pieces
}

// choose starts the next message: answers to the peer and our own operations
// take turns, so that neither starves the other.
func (o *outbound) choose() bool {
	switch {
	case o.rtr:
		o.startRTR()
		return true
	case o.s.nudges.Load() && o.s.nudges.Swap(false) && !o.s.closing.Load():
		o.startEmptyWrite()
		return true
	}
	o.answers = !o.answers
	if o.answers {
		return o.startAnswer() || o.startOperation()
	}
	return o.startOperation() || o.startAnswer()
}
