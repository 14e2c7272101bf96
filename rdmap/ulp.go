// This file says what RDMAP asks of the protocol above it.

package rdmap

import "github.com/weft-rdma/weft/ddp"

// An Operation is one operation of the requester's send queue, as RDMAP needs
// to know it.
type Operation struct {
	Opcode Opcode // of the message that starts it: a Send, Write, Read Request, Immediate Data or Atomic Request
	Fence  bool   // waits until every earlier Read and atomic has been answered (RFC 5040 §5.5 rule 12)

	// Ticket identifies the operation to the ULP. Tickets of successive operations
	// increase.
	Ticket uint64

	// Length counts the payload octets of a Send or Write, and the octets
	// that a Read asks for.
	Length uint32

	InvalidateSTag uint32 // of the Send with Invalidate types: the peer's STag

	RemoteSTag uint32 // of Write, Read and atomics
	RemoteTO   uint64

	SinkSTag uint32 // of Read: where the response goes
	SinkTO   uint64

	Atomic    AtomicRequest // of atomics; RDMAP fills in identifier, STag and TO
	Immediate [8]byte
}

// A Delivery is a Send or Immediate Data message that has arrived whole.
type Delivery struct {
	Opcode      Opcode
	Length      uint32
	Invalidated uint32 // the local STag that the message invalidated, if HasSTag
	HasSTag     bool
	Immediate   [8]byte
}

// A SendQueue is where the operations of the requester come from. Its methods
// but Responded are called by the one goroutine that owns the outgoing half at
// that moment; Responded is called by the receiving goroutine. None may wait.
type SendQueue interface {
	// Next takes the next operation off the queue, or reports that there is
	// none to be started now.
	Next(op *Operation) bool

	// Gather appends to dst the local memory that holds octets [off, off+n)
	// of the operation's payload, and holds it until the Hold is released.
	// An error means that the operation cannot go on: Failed follows.
	Gather(dst [][]byte, ticket uint64, off uint64, n int) ([][]byte, error)

	// Sent reports that every Send, Write and Immediate Data operation up to
	// ticket has been handed over to the transport, which makes it complete
	// at the data source (RFC 5040 §5.5 rule 14). It returns whether Next may find
	// an operation now, one that had to wait for this.
	Sent(ticket uint64) (more bool)

	// Responded reports that the response of a Read or atomic has been
	// delivered, which completes it (rule 19). value is what an atomic found.
	// An error is the operation's: its local memory was refused.
	Responded(ticket uint64, value uint64) error

	// Failed reports that an operation could not be sent, and that nothing
	// after it will be. The ULP answers by terminating the stream. The error is that
	// of Gather, [ErrNoORD], a [*MemoryError], or says that memory was revoked.
	Failed(ticket uint64, err error)

	// Damaged reports, with a *MemoryError, that a segment of an operation has left in
	// part and cannot be completed: the stream is about to be reset.
	Damaged(ticket uint64, err error)
}

// A RunQueue is a [SendQueue] that gives short operations several at a time. A ULP need not be
// one. What its methods find stays in the queue, and Next returns it one by one, until Took. ticket
// is that of the first, the others follow it.
type RunQueue interface {
	// ShortRun fills in r with the operations at the front of the queue that are of opcode op, a
	// Write or a Send without an STag to invalidate, may start now, have 1 to most octets, and
	// whose memory is in one piece: none, one or more. It holds their memory as Gather does, each
	// for the frame behind that of the one before.
	ShortRun(op Opcode, r *ddp.Run, most int) (ticket uint64)

	// Reads fills in reads with the RDMA Reads at the front of the queue that may start now, as
	// far as there is room, and returns how many.
	Reads(reads []ReadRequest) (ticket uint64, n int)

	// Took takes the operations below ticket off the queue, as Next does.
	Took(ticket uint64)

	// Waiting reports that Next may find an operation now.
	Waiting() bool
}

// A ReceiveQueue takes Send and Immediate Data messages. Its methods are
// called by the receiving goroutine.
type ReceiveQueue interface {
	// Receive readies the next posted receive and returns its size in octets;
	// false if there is none. It may wait for one to be posted.
	Receive() (size uint64, ok bool)

	// Scatter appends to dst the memory for octets [off, off+n) of the
	// receive, and holds it until Release.
	Scatter(dst [][]byte, off uint64, n int) ([][]byte, error)

	// Unwritable completes the receive in error, because memory that Scatter gave
	// cannot be written; cause says why. It returns the error that ends the stream.
	Unwritable(cause error) error

	// Delivered completes the receive.
	Delivered(d *Delivery)

	// Refused completes the receive in error: its message was in place but
	// asked for the invalidation of an STag that may not be invalidated. It
	// returns the error that ends the stream.
	Refused(err error) error
}

// A BlockingReceiveQueue is a [ReceiveQueue] whose Receive may block until a receive is
// posted. A ULP need not be one.
type BlockingReceiveQueue interface {
	// WouldBlock reports that Receive would block. It is called by the receiving goroutine.
	WouldBlock() bool
}

// A RunReceives is a [ReceiveQueue] that takes several messages together. A ULP need not be one.
type RunReceives interface {
	// AnotherReceive returns the memory for a message of n octets, at least one, in the receive
	// behind the next i: if there is one without waiting, that is long enough, and its memory is
	// in one piece, of the STag that the last Scatter was for, since when memory has not been
	// released. It holds that as Scatter does.
	AnotherReceive(i, n int) []byte

	// DeliveredRun completes as many receives as there are lengths, of messages of opcode op.
	DeliveredRun(op Opcode, lengths []uint32)
}

// Memory is protected memory as the peer may use it. It refuses with a Fault.
// n is never 0: an access of no octets is not checked (RFC 5040 §5.2.1).
type Memory interface {
	// WriteTarget appends the memory that an RDMA Write may write, and
	// ReadSink the one that a Read Response may; both hold it until Release or Idle.
	// Called by the receiving goroutine.
	WriteTarget(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault)
	ReadSink(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault)

	// CheckSource checks the whole source of a Read Request when the request
	// is delivered, holding nothing. ddp.FaultDisabled is: no Read is let in.
	CheckSource(stag uint32, to uint64, n uint32) ddp.Fault

	// CheckAtomic checks the target of an Atomic Request likewise; aligned is
	// as for Atomic.
	CheckAtomic(a *AtomicRequest) (aligned bool, f ddp.Fault)

	// Invalidate makes an STag invalid for the peer's Send with Invalidate.
	// No memory may be held by the receiving goroutine meanwhile.
	Invalidate(stag uint32) ddp.Fault

	// Release ends every hold of the receiving goroutine, before it waits for the
	// peer, or for others to release memory. Idle does the same between messages.
	Release()
	Idle()

	// Source appends the memory of a Read Response and holds it as Gather
	// does. Atomic executes an atomic operation and returns what it found;
	// aligned is false, and nothing was done, if the target is not at a
	// multiple of 8. Called by the owner of the outgoing half.
	Source(dst [][]byte, stag uint32, to uint64, n int) ([][]byte, ddp.Fault)
	Atomic(a *AtomicRequest) (found uint64, aligned bool, f ddp.Fault)

	// Unanswered reports that a request of the peer cannot be answered although it was
	// in order when it arrived: its memory has gone since. The ULP
	// answers by terminating the stream because of err. Called by the owner
	// of the outgoing half.
	Unanswered(err error)
}

// RunSources is a [Memory] that finds the sources of Read Responses faster. A ULP that is a RunQueue
// may be one. Called by the owner of the outgoing half.
type RunSources interface {
	// AnotherSource is Source for the frame behind the last one, for the STag that the last
	// Source was for. It returns nil if the memory is refused or not in one piece.
	AnotherSource(stag uint32, to uint64, n int) []byte
}

// RunTargets is a [Memory] that finds one target after the other faster. A ULP need not be one.
// Called by the receiving goroutine.
type RunTargets interface {
	// AnotherTarget is WriteTarget for the STag that the last WriteTarget was for, since when
	// memory has not been released. It returns nil if the memory is refused or not in one piece.
	AnotherTarget(stag uint32, to uint64, n int) []byte

	// AnotherSink is ReadSink for the STag that the last ReadSink was for, likewise. It also returns
	// nil if more than Answered is to be called for the Read with that ticket.
	AnotherSink(ticket uint64, stag uint32, to uint64, n int) []byte

	// Answered is Responded for the Reads up to ticket.
	Answered(ticket uint64)
}

// A Hold keeps the memory of segments that were appended but not yet written.
// The ULP's Gather, Source and Atomic put memory under it. Frames are numbered
// from 0 as they are appended.
type Hold interface {
	ddp.Guard

	// SetFrames sets the numbers of the frames, from first to last, for which memory is
	// gathered next.
	SetFrames(first, last uint64)
	// Full reports that frames have to leave before more memory is gathered.
	Full() bool
	// Revoked returns, after Acquire said no, the lowest frame whose memory
	// was revoked; any frame that is done if those are all done by now.
	Revoked() uint64
	// Done reports that the frames below n have been written, Truncate that
	// those from n on will not be: their memory is no longer needed.
	Done(n uint64)
	Truncate(n uint64)
}

// ULP is what RDMAP asks of the protocol above it.
type ULP interface {
	SendQueue
	ReceiveQueue
	Memory
}
