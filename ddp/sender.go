// This file sends: it gives segments to the LLP (RFC 5041 §5.2).

package ddp

import "errors"

// A Sender is the Data Source of one stream: it cuts the messages that the ULP
// submits into segments and gives them to the LLP (RFC 5041 §5.2).
//
//  1. A Start method submits a message. It has to be cut to its end, or dropped,
//     before the next one is submitted.
//  2. Next says which octets of the message the next segment carries.
//  3. The ULP finds the memory that holds them, and Append gives the segment to
//     the LLP's batch. A fault in that memory leaves the message where it was.
//  4. Flush has the LLP write the batch.
//
// Segments are numbered from 0 in the order in which they are appended. Not safe
// for concurrent use.
type Sender struct {
	llp     LLP
	version uint8
	guard   watchedGuard
	seq     Sequence
	msg     Outbound
	n       int // octets of payload of the segment that Next announced
	header  [UntaggedLen]byte
}

// NewSender returns the sender of a fresh stream over llp. g, which may be nil, is
// held around each attempt to write.
func NewSender(llp LLP, g Guard) *Sender {
	s := new(Sender)
	s.Init(llp, g)
	return s
}

// Init makes s what NewSender returns. s must not be copied afterwards.
func (s *Sender) Init(llp LLP, g Guard) {
	*s = Sender{llp: llp, version: llp.Version()}
	if g != nil {
		s.guard.Guard = g
		llp.Guard(&s.guard)
	}
}

// StartTagged submits a message of length octets to (stag, to). The ULP gives the
// first TO; a message longer than 2^32-1 octets cannot be expressed (RFC 5041
// §5.2).
func (s *Sender) StartTagged(rsvdULP uint8, stag uint32, to uint64, length uint32) {
	s.msg.StartTagged(s.version, rsvdULP, stag, to, length)
}

// StartUntagged submits a message of length octets to queue qn, below [Queues],
// and returns the MSN that it gets.
func (s *Sender) StartUntagged(rsvdULP [5]byte, qn, length uint32) (msn uint32) {
	msn = s.seq.Next(qn)
	s.msg.StartUntagged(s.version, rsvdULP, qn, msn, length)
	return msn
}

// StartOnly is StartUntagged for a queue that carries one message in the life of
// the stream: it is message 1 also if Truncate has dropped an earlier attempt.
func (s *Sender) StartOnly(rsvdULP [5]byte, qn, length uint32) {
	s.msg.StartUntagged(s.version, rsvdULP, qn, 1, length)
}

// Active reports whether a segment of the message submitted last is still to be
// appended.
func (s *Sender) Active() bool { return !s.msg.Done() }

// Drop gives up the rest of the message.
func (s *Sender) Drop() { s.msg.pending = false }

// Next returns what the next segment carries: octets [off, off+n) of the message.
// The message has to be Active.
func (s *Sender) Next() (off uint32, n int) {
	s.n = s.msg.Peek(s.llp.MULPDU())
	return s.msg.sent, s.n
}

// Append gives the LLP the segment that Next has announced, whose payload is in the
// given pieces. last reports that it is the last of its message. Append may fault in
// payload, see [LLP]: the message has not advanced then.
func (s *Sender) Append(payload [][]byte) (last bool) {
	hdr, last := s.msg.head(s.n, s.header[:0])
	s.llp.Append(hdr, payload)
	s.msg.advance(s.n)
	return last
}

// AppendVolatile is Append for payload that others may change at any time. copied
// reports that nothing refers to it any more.
func (s *Sender) AppendVolatile(payload [][]byte) (last, copied bool) {
	hdr, last := s.msg.head(s.n, s.header[:0])
	copied = s.llp.AppendVolatile(hdr, payload)
	s.msg.advance(s.n)
	return last, copied
}

// Fenced reports that nothing may be sent yet; see [LLP].
func (s *Sender) Fenced() bool { return s.llp.Fenced() }

// CanTry reports whether Flush without waiting can make progress; see [LLP].
func (s *Sender) CanTry() bool { return s.llp.CanTry() }

// Room reports whether the batch takes another segment.
func (s *Sender) Room() bool { return s.llp.Room() }

// Appended and Written count the segments appended and those that the LLP has
// wholly given to the transport.
func (s *Sender) Appended() uint64 { return s.llp.Appended() }

// Written counts the segments that have wholly left.
func (s *Sender) Written() uint64 { return s.llp.Written() }

// Empty reports that every segment appended has left.
func (s *Sender) Empty() bool { return s.llp.Appended() == s.llp.Written() }

// Flush writes the batch; see [LLP]. The error is [ErrRevoked] or an
// [*UnreadableError] if memory of segments that have not left is at fault: the
// stream can go on when Truncate has dropped them. Any other error is the LLP's,
// and ends the sending half.
func (s *Sender) Flush(wait bool) (drained bool, err error) {
	s.guard.refused = false
	drained, err = s.llp.Flush(wait)
	if err == nil {
		return drained, nil
	}
	if s.guard.refused {
		return false, ErrRevoked
	}
	var u UnreadableSegment
	if errors.As(err, &u) {
		segment, cause := u.Unreadable()
		return false, &UnreadableError{segment, cause}
	}
	return false, err
}

// Truncate drops the segments from number n on that have not begun to be written,
// and what Append has left of one when it faulted. It reports whether segment n has
// begun, and so remains.
func (s *Sender) Truncate(n uint64) (begun bool) { return s.llp.Truncate(n) > n }

// CloseWrite ends the sending half gracefully; see [LLP].
func (s *Sender) CloseWrite() error { return s.llp.CloseWrite() }

// A watchedGuard remembers whether it refused the last attempt to write.
type watchedGuard struct {
	Guard
	refused bool
}

func (g *watchedGuard) Acquire() bool {
	ok := g.Guard.Acquire()
	g.refused = !ok
	return ok
}
