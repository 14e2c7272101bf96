// This file sends: it gives segments to the LLP (RFC 5041 §5.2).

package ddp

import "errors"

// A Sender is the Data Source of one stream: it cuts the messages that the ULP
// submits into segments and gives them to the LLP (RFC 5041 §5.2).
//
//  1. A Start method submits a message. It has to be cut to its end, or dropped,
//     before the next one is submitted.
//  2. Next says which octets of the message the next segments carry.
//  3. The ULP finds the memory that holds them, and Append gives the segments to
//     the LLP's batch. A fault in that memory leaves the message behind the last whole one.
//  4. Flush has the LLP write the batch.
//
// Segments are numbered from 0 in the order in which they are appended. Not safe
// for concurrent use.
type Sender struct {
	llp     LLP
	runs    RunLLP // llp, if it is one
	version uint8
	guard   watchedGuard
	seq     Sequence
	msg     Outbound
	n       int // octets of payload of the segments that Next announced
	size    int // of each of them but the last
	header  [UntaggedLen]byte
	cut     [][]byte // payload of the segment at hand, else empty
	copied  bool     // of the volatile payload appended last
	count   uint64   // segments appended
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
	*s = Sender{llp: llp, version: llp.Version(), count: llp.Appended()}
	s.runs, _ = llp.(RunLLP)
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

// Next returns what the next segments carry: octets [off, off+n) of the message. They are
// as many as have no more than most octets of payload, and at least one. The message has to be
// Active.
func (s *Sender) Next(most int) (off uint32, n, segments int) {
	s.size = s.msg.Peek(s.llp.MULPDU())
	s.n, segments = s.size, 1
	if left := s.msg.Remaining(); most >= 2*s.size && left > uint32(s.size) {
		segments = most / s.size
		s.n = int(min(uint64(left), uint64(segments*s.size)))
		segments = (s.n + s.size - 1) / s.size
	}
	return s.msg.sent, s.n, segments
}

// Size is how many octets of payload each of the segments that Next has announced has, but the
// last one, which may have fewer.
func (s *Sender) Size() int { return s.size }

// Copied reports whether nothing refers to the volatile payload appended last. It is so for all
// segments of a stream, or for none.
func (s *Sender) Copied() bool { return s.copied }

// Offset is how many octets of the message have been appended.
func (s *Sender) Offset() uint32 { return s.msg.sent }

// Append gives the LLP the segments that Next has announced, whose payload is in the
// given pieces, or fewer if the batch is full. last reports that the last of the message is
// among them. Append may fault in payload, see [LLP]: the message has advanced by the segments
// appended then.
func (s *Sender) Append(payload [][]byte) (last bool) {
	if s.n > s.size {
		last, _ = s.appendRun(payload, false)
		return last
	}
	hdr, last := s.msg.head(s.n, s.header[:0])
	s.llp.Append(hdr, payload)
	s.advance(s.n)
	return last
}

// AppendVolatile is Append for payload that others may change at any time. copied
// reports that nothing refers to it any more.
func (s *Sender) AppendVolatile(payload [][]byte) (last, copied bool) {
	if s.n > s.size {
		return s.appendRun(payload, true)
	}
	hdr, last := s.msg.head(s.n, s.header[:0])
	copied = s.llp.AppendVolatile(hdr, payload)
	s.copied = copied
	s.advance(s.n)
	return last, copied
}

// appendRun appends several segments.
func (s *Sender) appendRun(payload [][]byte, volatile bool) (last, copied bool) {
	rest := pieces{left: payload}
	for left := s.n; left > 0; {
		n := min(left, s.size)
		var hdr []byte
		hdr, last = s.msg.head(n, s.header[:0])
		s.cut = rest.cut(s.cut[:0], n)
		if volatile {
			copied = s.llp.AppendVolatile(hdr, s.cut)
			s.copied = copied
		} else {
			s.llp.Append(hdr, s.cut)
		}
		s.advance(n)
		if left -= n; !s.llp.Room() {
			break
		}
	}
	clear(s.cut[:cap(s.cut)])
	return last, copied
}

// advance goes on behind a segment of n octets of payload that has been appended.
func (s *Sender) advance(n int) {
	s.count++
	s.msg.advance(n)
}

// pieces of memory are cut one behind the other. They stay as they are.
type pieces struct {
	left [][]byte
	used int // octets of left[0]
}

// cut appends to dst the next n octets, as far as there are so many.
func (p *pieces) cut(dst [][]byte, n int) [][]byte {
	for n > 0 && len(p.left) > 0 {
		b := p.left[0][p.used:]
		if n < len(b) {
			p.used += n
			return append(dst, b[:n:n])
		}
		dst = append(dst, b)
		n -= len(b)
		p.left, p.used = p.left[1:], 0
	}
	return dst
}

// Fenced reports that nothing may be sent yet; see [LLP].
func (s *Sender) Fenced() bool { return s.llp.Fenced() }

// CanTry reports whether Flush without waiting can make progress; see [LLP].
func (s *Sender) CanTry() bool { return s.llp.CanTry() }

// Room reports whether the batch takes another segment.
func (s *Sender) Room() bool { return s.llp.Room() }

// Appended and Written count the segments appended and those that the LLP has
// wholly given to the transport.
func (s *Sender) Appended() uint64 { return s.count }

// Written counts the segments that have wholly left.
func (s *Sender) Written() uint64 { return s.llp.Written() }

// Empty reports that every segment appended has left.
func (s *Sender) Empty() bool { return s.count == s.llp.Written() }

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
func (s *Sender) Truncate(n uint64) (begun bool) {
	s.count = s.llp.Truncate(n)
	return s.count > n
}

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
