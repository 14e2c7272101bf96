// This file says what DDP asks of the protocol below it. optional.go has what that may offer
// besides.

package ddp

import "context"

// LLP is the lower layer protocol as DDP needs it (RFC 5041 §3): an ordered,
// reliable stream that keeps the boundaries of the segments given to it. MPA over
// TCP is one: package mpa, which this one does not import.
//
// The sending half (Version to Guard) belongs to one goroutine at a time, which
// its user sees to; the receiving half to the goroutine in Receive, or to the one in
// Poll while that waits.
//
// Errors that end a stream are [LLPError]s. What an LLP may offer besides is in
// optional.go: [EstablishedLLP], [StreamingLLP], [AddressedLLP], [SpinningLLP],
// [NonBlockingLLP], [WaitableLLP].
type LLP interface {
	// Version is the DDP version (DV) that the stream's set-up implies:
	// 1 for the IETF's, 0 for the RDMA Consortium's (RFC 5044 appendix C).
	Version() uint8

	// MULPDU is the largest segment, in octets, to be appended now
	// (RFC 5044 §4.5). It changes with the path and is never below 128.
	MULPDU() int

	// Fenced reports that nothing may be sent yet because the peer's first
	// frame has not arrived (RFC 5044 §7.1.2 rule 4).
	Fenced() bool

	// Room reports whether the batch being gathered takes another segment.
	Room() bool

	// Append frames a segment of header followed by payload. Header and small
	// payload are copied; large payload is referred to until it is written. Append may
	// fault in payload: its user guards the segments of a batch together
	// ([pages.CatchIn]), and calls Truncate(Appended()) after a fault.
	Append(header []byte, payload [][]byte)

	// AppendVolatile is Append for payload that others may change at any time.
	// Where there is a digest over it, which a change before the write would
	// make the peer end the stream for, all of it is copied, and the digest is
	// of the copy. copied reports that: nothing is referred to any more.
	AppendVolatile(header []byte, payload [][]byte) (copied bool)

	// Appended and Written count the segments appended and those wholly given
	// to the transport, since the stream began.
	Appended() uint64
	Written() uint64

	// Flush gives what was appended to the transport. With wait false it
	// makes no attempt that could wait for the network. With wait true it may
	// return when some segments, and not all, have been written whole, so that
	// its user can account for them. drained reports that nothing is left.
	//
	// Two errors leave the sending half usable, when Truncate has dropped the
	// segments that they are about: any error that follows a refusal of the
	// Guard, and an [UnreadableSegment].
	Flush(wait bool) (drained bool, err error)

	// CanTry reports whether Flush(false) can make progress at all: a
	// transport without non-blocking writes says no.
	CanTry() bool

	// Truncate drops the segments appended and not begun to be written, from
	// number n on (counted as Appended counts, from 0), and what Append has left of one
	// when it faulted. It reports how many remain counted by Appended.
	Truncate(n uint64) uint64

	// Guard sets what is held around each attempt to write. When it refuses,
	// Flush writes nothing and fails at once.
	Guard(g Guard)

	// Receive hands the peer's segments to s until the stream ends: io.EOF
	// when the peer closed between segments. It guards what s writes to, see [Sink].
	Receive(s Sink) error

	// Others may see to the receiving half while Receive waits.
	Poller

	// CloseWrite ends the sending half gracefully (FIN); Drain reads and drops
	// until the peer's end or error; Reset ends both halves at once (RST), in a
	// way that the peer does not take for a graceful close.
	CloseWrite() error
	Drain() error
	Reset() error
	Close() error
}

// A Sink takes the segments of one stream, in order: [Receiver] is one. An LLP
// calls it from one goroutine at a time. Memory that a Sink gives is held between
// Window and Release only, and never while the LLP waits for the network.
//
// Sink and [Guard] are aliases, so that an LLP need not import this package.
type Sink = interface {
	// ULPDU takes one whole segment, which is valid until it returns. An error
	// ends the reception: Receive returns it. A fault in the memory that Writing
	// names ends ULPDU, and Unwritable follows. No lock may be held where one can
	// occur.
	ULPDU(u []byte) error

	// Writing returns the memory that ULPDU is writing to.
	Writing() [][]byte

	// Begin is asked, by an LLP that can read payload straight into its place,
	// about a segment of length octets of which no more than head has arrived.
	// With ok the Sink has checked the headers, takes octets from head[skip:] on
	// through Window, and gets End when all are in place. Without, it gets the
	// whole segment later.
	Begin(head []byte, length int) (skip int, ok bool, err error)

	// Window appends to dst the memory for octets [off, length) of the segment
	// begun, checks it again, and holds it until Release.
	Window(dst [][]byte, off int) ([][]byte, error)

	// Unwritable reports that memory of Writing, or before Release that of the last
	// Window, cannot be written, and why. It returns the error that ends the
	// reception.
	Unwritable(cause error) error

	// Release ends the hold of the last Window.
	Release()

	// End reports that every octet of the segment begun is in place.
	End() error

	// Idle is called when all that has arrived was handed over, before the LLP
	// waits for more.
	Idle()
}

// A Guard holds the memory that segments not yet written refer to. The LLP
// acquires it around each attempt to write, which never waits, so that memory can
// be revoked while the LLP waits for the network.
type Guard = interface {
	// Acquire takes the hold; false means that some of the memory has been
	// revoked.
	Acquire() bool
	// Release ends it.
	Release()
}

// A CountingLLP counts what it carries, since the stream began. Counts may be called at
// any time. The octets are those of the transport's stream, framing included.
type CountingLLP interface {
	Counts() (segmentsIn, segmentsOut, octetsIn, octetsOut uint64)
}

// A Poller lets a consumer receive in its own goroutine, where the one in Receive would
// have to wake it. Methods may be called by any goroutine.
type Poller interface {
	// Poll hands what has arrived to the Sink of the Receive that is under way,
	// in the caller's goroutine and without waiting, and reports whether there
	// was anything.
	Poll() bool

	// Wait waits in the place of Receive until Poll may find something, ctx is done,
	// Interrupt is called, or nothing has come for long. It reports false, at once, if
	// Receive waits itself. It leaves the wait to a consumer that waits each time.
	Wait(ctx context.Context) bool

	// Interrupt ends the Wait under way, or the next one if there is none.
	Interrupt()

	// Leave reports that a caller of Poll or Wait is about to sleep until something is
	// received, or to do something else.
	Leave()
}
