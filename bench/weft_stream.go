// Streams over Weft.
//
// The end of a Write or Send stream is an empty Send, which RDMAP delivers
// after all that went before it is in place, and one octet back. A Send stream
// has credits: the target sends an empty message for each quarter of its
// receive queue that it has emptied and filled again.

package main

import (
	"context"
	"fmt"

	"github.com/weft-rdma/weft/verbs"
)

// A pace is how a workload's queues are used.
type pace struct {
	list     int // messages posted in one call, if batched
	signal   int // messages between two signaled ones
	depth    int // messages in flight
	sends    int // depth of the send queue
	receives int // depth of the receive queue
	credit   int // messages that one credit stands for
}

// paceOf sizes the queues: lists of 1024 messages or 256 KiB, whichever is
// less, eight lists in flight, and receives for 16 MiB but no more than 16384.
func paceOf(w Workload) pace {
	if w.Shape == Connect {
		return pace{sends: 1, receives: 1}
	}
	list := min(max(1, windowSize/w.Size), 1024)
	receives := min(max(16, 16<<20/w.Size), 16384)
	depth := 8 * list
	switch {
	case w.Path == Delayed:
		depth = delayedDepth
	case w.Size > maxSize:
		depth = max(2, depth*maxSize/w.Size)
	}
	return pace{
		list: list, signal: min(list, signalMost), depth: depth, sends: depth + 8,
		receives: receives + 8, credit: receives / 4,
	}
}

// delayedDepth is how many messages are in flight over a path that takes long.
const delayedDepth = 64

// signalMost is how many messages of a stream one signaled request stands for
// at most.
const signalMost = 64

// credits is how many messages may be under way to the target at most.
func (p pace) credits() int { return 4 * p.credit }

// replySize is the length of the Send that ends a stream, as opposed to a
// credit, which is empty.
const replySize = 1

// A sender is the active end of a stream.
type sender struct {
	*link
	pace
	watch    *stopwatch
	inFlight int // send-queue requests posted and not known to be complete
	credit   int // messages that the target has receives for
	ended    bool
	wrs      []verbs.SendWR
	window   int // octets
	at       int // offset of the next message in the window
	reply    verbs.RecvWR
}

// stream prepares the active end of a stream: receives for credits and the
// reply.
func (l *link) stream() (func(context.Context) (Sample, error), error) {
	p := paceOf(l.job.Workload)
	s := &sender{link: l, pace: p, credit: p.credits(), wrs: make([]verbs.SendWR, p.list), window: l.job.Workload.window()}
	s.reply.SGL = []verbs.SGE{l.mr.SGE(0, 0)}
	op := map[Op]verbs.Op{Write: verbs.OpWrite, Read: verbs.OpRead, Send: verbs.OpSend}[l.job.Workload.Op]
	for i := range s.wrs {
		s.wrs[i] = verbs.SendWR{Op: op, SGL: make([]verbs.SGE, 1)}
		if i%p.signal == p.signal-1 {
			s.wrs[i].ID, s.wrs[i].Flags = uint64(p.signal), verbs.Signaled
		}
	}
	s.reply.SGL[0] = l.mr.SGE(l.replyOffset(), replySize)
	for range 8 {
		if err := l.qp.PostRecv(s.reply); err != nil {
			return nil, err
		}
	}
	return s.run, nil
}

// replyOffset is where the reply's octet leaves from and arrives: behind the
// window.
func (l *link) replyOffset() int { return l.job.Workload.window() }

func (s *sender) run(ctx context.Context) (Sample, error) {
	run := newStopwatch(s.job)
	s.watch = run
	for {
		if err := s.makeRoom(ctx); err != nil {
			return Sample{}, err
		}
		if err := s.post(); err != nil {
			return Sample{}, err
		}
		if run.over() {
			break
		}
	}
	if err := s.finish(ctx); err != nil {
		return Sample{}, err
	}
	return run.stop(), nil
}

// makeRoom waits until a list may be posted.
func (s *sender) makeRoom(ctx context.Context) error {
	for s.inFlight+s.list > s.depth || s.job.Workload.Op == Send && s.credit < s.list {
		if err := s.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// post posts a list's worth of messages, at once or one by one.
func (s *sender) post() error {
	size := s.job.Workload.Size
	for i := range s.wrs {
		s.wrs[i].SGL[0] = s.mr.SGE(s.at, size)
		s.wrs[i].Remote = verbs.Remote{STag: s.remote.STag, TO: s.remote.TO + uint64(s.at)}
		if s.at += size; s.at >= s.window {
			s.at = 0
		}
	}
	s.inFlight += s.list
	s.credit -= s.list
	if s.job.Workload.Batch {
		_, err := s.qp.PostSends(s.wrs)
		return err
	}
	for i := range s.wrs {
		if err := s.qp.PostSend(s.wrs[i]); err != nil {
			return err
		}
	}
	return nil
}

// reap takes one completion. The ID of a send-queue request says how many it
// completes.
func (s *sender) reap(ctx context.Context) error {
	wc, err := s.completion(ctx)
	if err != nil {
		return err
	}
	switch {
	case wc.Op != verbs.OpRecv:
		s.inFlight -= int(wc.ID)
		s.watch.add(wc.ID)
		return nil
	case wc.Bytes == replySize:
		s.ended = true
	default:
		s.credit += s.pace.credit
	}
	return s.qp.PostRecv(s.reply)
}

// finish returns when all messages are known to be in place.
func (s *sender) finish(ctx context.Context) error {
	if s.job.Workload.Op != Read {
		if err := s.qp.PostSend(verbs.SendWR{Op: verbs.OpSend}); err != nil {
			return err
		}
	}
	for s.inFlight > 0 || s.job.Workload.Op != Read && !s.ended {
		if err := s.reap(ctx); err != nil {
			return err
		}
	}
	return nil
}

// A receiver is the passive end of a stream.
type receiver struct {
	*link
	pace
	wrs      []verbs.RecvWR
	window   int // octets
	at       int // offset of the next receive in the window
	consumed int // receives filled that no credit has reported yet
	owed     int // of these, receives not posted again yet
}

// sink prepares the passive end of a stream: its receives.
func (l *link) sink() (func(context.Context) error, error) {
	r := &receiver{link: l, pace: paceOf(l.job.Workload), window: l.job.Workload.window()}
	r.wrs = make([]verbs.RecvWR, r.list)
	for i := range r.wrs {
		r.wrs[i].SGL = make([]verbs.SGE, 1)
	}
	switch l.job.Workload.Op {
	case Read:
		return func(context.Context) error { return nil }, nil
	case Write:
		return r.end, l.qp.PostRecv(verbs.RecvWR{})
	}
	return r.run, r.refill(r.credits() + 1) // one for the end
}

// refill posts n receives, in lists.
func (r *receiver) refill(n int) error {
	size := r.job.Workload.Size
	for n > 0 {
		list := r.wrs[:min(n, len(r.wrs))]
		for i := range list {
			list[i].SGL[0] = r.mr.SGE(r.at, size)
			if r.at += size; r.at >= r.window {
				r.at = 0
			}
		}
		if _, err := r.qp.PostRecvs(list); err != nil {
			return err
		}
		n -= len(list)
	}
	return nil
}

// run takes messages until the empty one.
func (r *receiver) run(ctx context.Context) error {
	for {
		wc, err := r.completion(ctx)
		if err != nil {
			return err
		}
		if wc.Op != verbs.OpRecv {
			continue // a credit has left
		}
		if wc.Bytes == 0 {
			return r.answer()
		}
		if int(wc.Bytes) != r.job.Workload.Size {
			return fmt.Errorf("a message of %d octets arrived, should be %d", wc.Bytes, r.job.Workload.Size)
		}
		r.consumed++
		if r.owed++; r.owed == r.list {
			if err := r.refill(r.owed); err != nil {
				return err
			}
			r.owed = 0
		}
		if r.consumed >= r.pace.credit && r.owed == 0 {
			r.consumed -= r.pace.credit
			if err := r.qp.PostSend(verbs.SendWR{Op: verbs.OpSend, Flags: verbs.Signaled}); err != nil {
				return err
			}
		}
	}
}

// end waits for the empty message after a stream of RDMA Writes.
func (r *receiver) end(ctx context.Context) error {
	if _, err := r.completion(ctx); err != nil {
		return err
	}
	return r.answer()
}

// answer confirms to the initiator that everything is in place.
func (r *receiver) answer() error {
	return r.qp.PostSend(verbs.SendWR{
		Op: verbs.OpSend, Flags: verbs.Signaled,
		SGL: []verbs.SGE{r.mr.SGE(r.replyOffset(), replySize)},
	})
}
