// This file holds what an LLP may offer beyond [LLP], and a ULP or a Sink beyond [ULP] and
// [Sink]. The user of each interface asks for it by a type assertion, and does without it
// where it is missing. mpa.Conn has all those of an LLP.

package ddp

import (
	"context"
	"time"
)

// An EstablishedLLP knows whether its connection is established. QP.Modify (package verbs)
// asks before it takes the LLP.
type EstablishedLLP interface {
	// Established returns nil if octets can pass in both directions, as far as that can be
	// told without waiting.
	Established() error
}

// A StreamingLLP can send octets of its user's before Full Operation (Verbs §6.6.1.1).
type StreamingLLP interface {
	// StreamMessage sends b before anything else, within the time that ctx allows. If it
	// fails the peer may have received a part of b.
	StreamMessage(ctx context.Context, b []byte) error
}

// An AddressedLLP knows its peer's address.
type AddressedLLP interface {
	// Peer returns the address for a log, or "".
	Peer() string
}

// A SpinningLLP can poll before it sleeps.
type SpinningLLP interface {
	// Spin has Receive poll for d before it sleeps, unless others call Poll or Wait. It is
	// called before Receive.
	Spin(d time.Duration)
}

// An ExpectingLLP can poll when its user knows that the peer is about to send.
type ExpectingLLP interface {
	// Expect says, in Idle of the Sink, that more is to come within microseconds, as answers
	// or requests are under way: Receive may poll for a moment before it sleeps.
	Expect()
}

// A NonBlockingLLP can leave to Receive what would block its Sink.
type NonBlockingLLP interface {
	// PollNeverBlocks reports that Poll leaves to Receive each segment for which the Sink
	// would block. The Sink has to be a [BlockingSink].
	PollNeverBlocks() bool
}

// A WaitableLLP lets a consumer wait for several connections, and for other descriptors, in
// one call of poll(2).
type WaitableLLP interface {
	// BeginWait takes over the wait of the Receive under way: fd is readable when octets have
	// arrived, and when the connection ends. It reports false if Receive cannot be
	// replaced now. After true the caller calls EndWait within 64 ms; Close and Reset wait
	// for that.
	BeginWait() (fd uintptr, ok bool)

	// EndWait ends the wait. readable reports that octets have arrived: Poll follows, and
	// receives them. Otherwise Receive waits for them from now on.
	EndWait(readable bool)

	// Poll is that of [Poller].
	Poll() bool
}

// A RunLLP takes several short segments in one call.
type RunLLP interface {
	// AppendRun is Append for segments that are each the next size octets of headers and the
	// next payload, all of which is copied. After a fault in payload its user calls Truncate
	// with what Appended was before, which drops all of them.
	AppendRun(headers []byte, size int, payloads [][]byte)
}

// A BlockingSink is a [Sink] that may have to block before it can take a segment. An alias,
// so that an LLP need not import this package.
type BlockingSink = interface {
	// WouldBlock reports that ULPDU(u) would block. An LLP that must not block asks before
	// it hands u over.
	WouldBlock(u []byte) bool
}

// A BlockingULP is a [ULP] that may block in Buffer.
type BlockingULP interface {
	// WouldBlock reports that Buffer would block for the next message of queue qn.
	WouldBlock(qn uint32) bool
}

// A JoiningSink is a [Sink] that lets several segments be placed together. An alias, so that
// an LLP need not import this package.
type JoiningSink = interface {
	// MayJoin reports that Join may say yes to the segment that follows: not behind the last
	// of a message.
	MayJoin() bool
	// Join is asked, after Begin said yes, about the segment that follows: its first octets,
	// and its length. Saying yes, Window goes on with the memory for its octets from skip on.
	// It is asked about one after the other. When all are in place, Begin and End are called
	// for each, after End for the one begun.
	Join(head []byte, length int) (skip int, ok bool)
}

// A RunSink is a [Sink] that takes several segments in one call. An alias, so that an LLP need
// not import this package.
type RunSink = interface {
	// ULPDUs is ULPDU for each of us, in order, up to the first error. us, which has at least
	// one, is valid until it returns.
	ULPDUs(us [][]byte) error
}
