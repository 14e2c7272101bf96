// This file takes inbound segments: it checks them, has them placed, and
// delivers messages (RFC 5041 §5.2, §5.4, §7.1).

package ddp

import (
	"math"

	"github.com/weft-rdma/weft/internal/memcopy"
)

// Receiver is the Data Sink of one stream. It takes segments in the order in
// which they were sent, as an LLP like MPA hands them over, and gives each
// octet to the ULP's memory once it passed every check.
//
// It holds messages to more than RFC 5041 demands: each queue's segments must
// come in order and without gaps, so that no peer can have a buffer delivered
// that it did not fill.
//
// After the first error, its own or the ULP's, it places nothing more and drops
// every segment silently (RFC 5041 §7.1). Not safe for concurrent use: calls come
// from the goroutine in [LLP].Receive, or from the one in Poll while that waits.
type Receiver struct {
	version  uint8
	failed   bool
	held     bool // a Window waits for its Release
	ulp      ULP
	blocks   BlockingULP  // ulp, if it is one
	joins    JoiningULP   // ulp, if it is one
	repeats  RepeatingULP // ulp, if it is one
	enqueues QueueingULP  // ulp, if it is one
	queues   [Queues]queue
	open     bool   // a tagged message has begun and its last segment is to come
	next     Tagged // if open: where that message goes on
	seg      segment
	alike    alike
	join     join     // what is placed together with the segment at hand
	dst      [][]byte // where the segment at hand goes while it is copied, else empty
}

// A queue is the receiving side of one untagged queue.
type queue struct {
	done     uint32 // MSN of the last message delivered; the next one is expected
	open     bool   // message done+1 has its buffer
	size     uint64 // of that buffer, octets
	received uint64 // octets of that message in place
}

// A segment is what is known of the segment at hand. Its headers live here so
// that handing them to the ULP allocates nothing.
type segment struct {
	header    [UntaggedLen]byte // as received
	headerLen int               // 14 or 18, 0 when the segment is too short for it
	length    int               // header and payload
	payload   int
	isTagged  bool
	tagged    Tagged
	untagged  Untagged
	// The headers moved on to a window that does not begin with the payload.
	taggedAt   Tagged
	untaggedAt Untagged
}

var (
	_ Sink        = (*Receiver)(nil)
	_ JoiningSink = (*Receiver)(nil)
	_ RunSink     = (*Receiver)(nil)
)

// NewReceiver returns the receiver of a fresh stream whose segments carry
// version (DV, see [LLP].Version) and are meant for ulp.
func NewReceiver(version uint8, ulp ULP) *Receiver {
	r := &Receiver{version: version, ulp: ulp}
	r.blocks, _ = ulp.(BlockingULP)
	r.joins, _ = ulp.(JoiningULP)
	r.repeats, _ = ulp.(RepeatingULP)
	r.enqueues, _ = ulp.(QueueingULP)
	return r
}

// ULPDU takes a whole segment (see [Sink]). The error is an [*Error] or
// comes from the ULP.
func (r *Receiver) ULPDU(u []byte) error {
	if r.failed {
		return nil // RFC 5041 §7.1: silently drop any subsequent segment
	}
	if err := r.check(u, len(u)); err != nil {
		return r.fail(err)
	}
	return r.put(u)
}

// put places the segment at hand, and counts it.
func (r *Receiver) put(u []byte) error {
	if r.seg.payload > 0 {
		dst, err := r.place(r.dst[:0])
		if err != nil {
			return r.fail(err)
		}
		r.dst = dst
		placed := scatter(dst, u[r.seg.headerLen:])
		r.forget()
		if placed < r.seg.payload {
			return r.fail(r.shortMemory(r.seg.payload - placed))
		}
	}
	return r.finish()
}

// WouldBlock reports that the ULP would block before it had a buffer for a segment (see
// [BlockingSink]).
func (r *Receiver) WouldBlock(u []byte) bool {
	var h Untagged
	return r.blocks != nil && !r.failed && h.Parse(u) && h.MO == 0 && r.blocks.WouldBlock(h.QN)
}

// scatter copies src to the pieces of dst, one after the other, and returns how many
// octets it copied.
func scatter(dst [][]byte, src []byte) (n int) {
	for _, d := range dst {
		n += memcopy.Copy(d, src[n:])
	}
	return n
}

// Writing returns the memory that ULPDU is writing to (see [Sink]).
func (r *Receiver) Writing() [][]byte { return r.dst }

// forget drops the references to the consumer's memory.
func (r *Receiver) forget() {
	if len(r.dst) == 1 { // as mostly; clear would cost a call
		r.dst[0] = nil
	} else {
		clear(r.dst)
	}
	r.dst = r.dst[:0]
}

// Begin is asked whether the payload of a segment may be read straight into its
// place (see [Sink]). It makes every check that ULPDU makes.
func (r *Receiver) Begin(head []byte, length int) (skip int, ok bool, err error) {
	if r.failed || len(head) == 0 || len(head) < HeaderLen(head) || length <= HeaderLen(head) {
		return 0, false, nil
	}
	if err := r.check(head, length); err != nil {
		return 0, false, r.fail(err)
	}
	dst, err := r.place(r.dst[:0])
	if err != nil {
		return 0, false, r.fail(err)
	}
	r.dst = dst
	r.forget()
	r.ulp.Release()
	r.begun()
	return r.seg.headerLen, true, nil
}

// Window appends to dst the memory for octets [off, length) of the segment begun, and for
// the payload of those joined. It checks again, as protection may have changed meanwhile
// (see [Sink]).
func (r *Receiver) Window(dst [][]byte, off int) ([][]byte, error) {
	skip := off - r.seg.headerLen
	n := r.seg.payload + r.join.payload - skip
	if r.failed || n <= 0 {
		return dst, nil
	}
	r.join.begins = skip
	dst, err := r.placeAt(dst, skip, n)
	if err != nil {
		return dst, r.fail(r.refusedWindow(err))
	}
	r.held = true
	return dst, nil
}

// Release ends the hold of the last Window: the LLP may wait for the peer now,
// and one that trickles must not be able to hold up a revocation.
func (r *Receiver) Release() {
	if r.held {
		r.held = false
		r.ulp.Release()
	}
}

// Unwritable reports that memory of Writing, or the beginning of the last Window, cannot be
// written (see [Sink]).
func (r *Receiver) Unwritable(cause error) error {
	r.forget()
	r.reach()
	r.reachAlike()
	return r.fail(r.unwritable(cause))
}

// End reports that the segment begun is in place.
func (r *Receiver) End() error {
	if r.failed {
		return nil
	}
	return r.finish()
}

// Idle is called before the LLP waits; it calls ULP.Idle.
func (r *Receiver) Idle() { r.ulp.Idle() }

// Offending is the segment at hand: its DDP header as received, nil if it was
// too short to have one, and its length in octets with the header. After an
// error it stays the segment at fault. The header is valid until the next
// segment.
func (r *Receiver) Offending() (header []byte, length int) {
	if r.seg.headerLen == 0 {
		return nil, r.seg.length
	}
	return r.seg.header[:r.seg.headerLen], r.seg.length
}

// UnfinishedTagged reports whether a tagged message has begun whose last
// segment has not come. h is the header of its latest segment that was not
// empty, with the TO at which the next one is to go on. DDP itself cannot tell
// where one tagged message ends and another begins (RFC 5041 §5.2): the ULP
// decides.
func (r *Receiver) UnfinishedTagged() (h Tagged, ok bool) { return r.next, r.open }

// UnfinishedUntagged reports whether a message on queue qn, below [Queues], has
// begun whose last segment has not come, and which one.
func (r *Receiver) UnfinishedUntagged(qn uint32) (msn uint32, ok bool) {
	q := &r.queues[qn]
	return q.done + 1, q.open
}

// check makes every check of the segment that needs no look at memory, in the
// order that decides which error is reported. u is at least its header, if it
// is long enough to have one.
func (r *Receiver) check(u []byte, length int) error {
	s := &r.seg
	s.headerLen, s.length, s.payload = 0, length, 0
	if length == 0 || length < HeaderLen(u) {
		return r.tooShort()
	}
	s.isTagged = IsTagged(u)
	if !s.isTagged {
		s.headerLen, s.payload = UntaggedLen, length-UntaggedLen
		s.header = [UntaggedLen]byte(u)
		s.untagged.Parse(u)
		return r.checkUntagged(&s.untagged, s.payload)
	}
	s.headerLen, s.payload = TaggedLen, length-TaggedLen
	copy(s.header[:TaggedLen], u)
	s.tagged.Parse(u)
	if s.tagged.Version != r.version {
		return r.badVersion(TaggedBuffer, CodeTaggedVersion, s.tagged.Version)
	}
	return r.ulp.AdmitTagged(&s.tagged, s.payload)
}

// checkUntagged makes RFC 5041 §7.1's checks of an untagged segment. They hold
// for empty ones too, which use up an MSN and a buffer like any other.
func (r *Receiver) checkUntagged(h *Untagged, n int) error {
	if h.Version != r.version {
		return r.badVersion(UntaggedBuffer, CodeUntaggedVersion, h.Version)
	}
	if h.QN >= Queues {
		return r.badQN(h.QN)
	}
	if err := r.ulp.AdmitUntagged(h, n); err != nil {
		return err
	}
	q := &r.queues[h.QN]
	if h.MSN != q.done+1 {
		return r.badMSN(h, q)
	}
	if !q.open {
		size, ok, err := r.ulp.Buffer(h.QN, h.MSN)
		if err != nil {
			return err
		}
		if !ok {
			return r.noBuffer(h)
		}
		q.open, q.size, q.received = true, size, 0
	}
	if uint64(h.MO) != q.received {
		return r.badMO(h, q)
	}
	// However large the buffer, a message has no more than 2^32-1 octets.
	if q.received+uint64(n) > min(q.size, math.MaxUint32) {
		return r.tooLong(h, q, n)
	}
	return nil
}

// place asks the ULP for the memory of the payload.
func (r *Receiver) place(dst [][]byte) ([][]byte, error) {
	return r.placeAt(dst, 0, r.seg.payload)
}

// placeAt asks the ULP for the memory of n octets of payload from octet skip on.
func (r *Receiver) placeAt(dst [][]byte, skip, n int) ([][]byte, error) {
	s := &r.seg
	if !s.isTagged {
		h := &s.untagged
		if skip > 0 {
			s.untaggedAt = s.untagged
			s.untaggedAt.MO += uint32(skip)
			h = &s.untaggedAt
		}
		return r.ulp.PlaceUntagged(dst, h, n)
	}
	h := &s.tagged
	if skip > 0 {
		s.taggedAt = s.tagged
		s.taggedAt.TO += uint64(skip)
		h = &s.taggedAt
	}
	dst, fault := r.ulp.PlaceTagged(dst, h, n)
	if fault != NoFault {
		return dst, r.refused(h, n, fault)
	}
	return dst, nil
}

// finish counts the segment as placed and delivers the message it ends
// (RFC 5041 §5.4).
func (r *Receiver) finish() error {
	s := &r.seg
	if s.isTagged {
		if !s.tagged.Last {
			// RFC 5041 §5.2: STag and TO of an empty segment mean nothing.
			if s.payload > 0 || !r.open {
				r.next = s.tagged
				r.next.TO += uint64(s.payload)
			}
			r.open = true
			return nil
		}
		r.open = false
		return r.fail(r.ulp.DeliverTagged(&s.tagged, s.payload))
	}
	q := &r.queues[s.untagged.QN]
	q.received += uint64(s.payload)
	if !s.untagged.Last {
		return nil
	}
	q.open = false
	q.done++ // RFC 5041 §4.3: modulo 2^32
	return r.fail(r.ulp.DeliverUntagged(&s.untagged, uint32(q.received)))
}

// fail notes that nothing more is to be placed, if err is an error.
func (r *Receiver) fail(err error) error {
	if err != nil {
		r.failed = true
	}
	return err
}
