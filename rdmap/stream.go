// This file is the stream: its terms, its parts, and how it ends.

package rdmap

import (
	"sync"
	"sync/atomic"

	"github.com/weft-rdma/weft/ddp"
)

// A Config holds the terms of a Stream.
type Config struct {
	// IRD and ORD are the numbers of RDMA Reads and atomics that may be
	// outstanding from the peer and to the peer (RFC 5040 §6.1).
	IRD, ORD int

	// Initiator: the peer may send only after the first message of this side. RTR is
	// then the ready-to-receive message to begin with, or none; on the
	// responder it is the set of those that the peer may begin with
	// (RFC 6581 §9.2).
	Initiator bool
	RTR       RTR

	// Opened, if not nil, is called once when the first message has begun to
	// leave. It must not call methods of the Stream.
	Opened func()

	// Signature is what the empty RDMA Writes carry that are sent as
	// ready-to-receive message and as nudge. Signed, if not nil, is called by the
	// reader for each of the peer's, when it is complete, with what that carries; true
	// has one sent in return.
	Signature Signature
	Signed    func(Signature) (reply bool)

	// SetAside is how many octets of messages that find no receive are kept, so that what
	// answers this side's Reads and atomics is processed meanwhile. The ULP is a
	// LateReceiver. With 0 it waits in Receive, and nothing behind the message is processed.
	SetAside int

	// Hold keeps memory between gathering and writing.
	Hold Hold

	// PeerClosed is called once after Stream.PeerClosed, when nothing is on
	// its way out: what the ULP knows to be unfinished then is unfinished.
	PeerClosed func()

	// HandOver is called when there is something to be sent that has to be waited
	// for: it has another goroutine call Stream.TakeOver, once. It must not wait
	// for that. It is not called any more when Stop has returned. If it is nil
	// Stream.Writer does what it should.
	HandOver func()

	// Ended is called once when the outgoing half has ended: with nil when
	// its end (FIN) was given to the transport, after a Terminate message or
	// Stream.Close, otherwise with what broke: then the LLP is to be reset, as the
	// peer would take FIN for a graceful close.
	Ended func(error)
}

// A Stream is one RDMAP stream over one DDP stream (RFC 5040). It owns what
// goes out and what comes in; its goroutines are the caller's:
//
//   - Reader receives until the stream ends; it runs in a goroutine of its own.
//   - Kick is called when the ULP has something to send: it sends at once, in the
//     caller's goroutine, what can be sent without waiting.
//   - TakeOver sends what could not be sent without waiting, in a goroutine that
//     lives only for the call; see Config.HandOver. Writer does so in one that stays.
type Stream struct {
	llp ddp.LLP
	ulp ULP
	cfg Config
	rv  uint8 // RDMAP version, equal to the DDP version (RFC 5044 appendix C)

	in  inbound
	out outbound

	requests  requestQueue  // the peer's reads and atomics, at most IRD
	responses responseQueue // our own, waiting for their answers, at most ORD

	// ready is closed when the peer's first segment arrived and was in order.
	ready chan struct{}

	// term is the Terminate message to be sent; the first one stays.
	term atomic.Pointer[outgoingTerminate]

	heard       atomic.Bool // a segment of the peer has arrived
	unconfirmed atomic.Bool // the last message of the peer's gets no answer
	nudges      atomic.Bool // Nudge was called

	closing    atomic.Bool // Close was called
	abandoned  atomic.Bool // Abandon was called
	peerClosed atomic.Bool // PeerClosed was called

	stop    sync.Once
	stopped atomic.Bool   // Stop was called
	done    chan struct{} // closed then

	Stats Stats
}

// Stats counts messages. The fields only grow.
type Stats struct {
	MessagesOut, MessagesIn    atomic.Uint64 // RDMA messages completed
	ReadsServed, AtomicsServed atomic.Uint64
	ReadOctets                 atomic.Uint64 // of the Reads served
	Writes, WriteOctets        atomic.Uint64 // received to their end
	EmptyWrites                atomic.Uint64 // zero-length Writes received, which cost the peer nothing
	TerminatesOut              atomic.Uint64 // 1 when the Terminate message has been written
	TerminatesIn               atomic.Uint64
}

// NewStream makes the stream over llp for ulp. Nothing is sent or received
// before Kick and Reader are called.
func NewStream(llp ddp.LLP, ulp ULP, cfg Config) *Stream {
	s := &Stream{llp: llp, ulp: ulp, cfg: cfg, rv: llp.Version(), ready: make(chan struct{}), done: make(chan struct{})}
	s.out.init(s)
	s.in.init(s)
	// A Read that opens a peer-to-peer stream has a place whatever IRD and ORD
	// say (RFC 6581 §9.1).
	opening := 0
	if cfg.RTR&RTRRead != 0 {
		opening = 1
	}
	s.requests.init(max(cfg.IRD, opening))
	s.responses.init(cfg.ORD, max(cfg.ORD, opening))
	return s
}

// Ready is closed when the peer's first segment has arrived and was in order.
// For the responder of a peer-to-peer start-up it is then that the stream is
// established (RFC 6581 §9.2). It never is if that segment was at fault, or
// was a Terminate message.
func (s *Stream) Ready() <-chan struct{} { return s.ready }

// Heard reports that a segment of the peer has arrived, whatever it was.
func (s *Stream) Heard() bool { return s.heard.Load() }

// Unconfirmed reports that the peer cannot know yet that all its messages have arrived:
// behind its last Send, RDMA Write or Immediate Data no Read or atomic has come, or one
// has whose answer has not been begun. The answer says that all before it is in place
// (RFC 5040 §5.5 rule 17).
func (s *Stream) Unconfirmed() bool { return s.unconfirmed.Load() || !s.Idle() }

// arrived notes a message of the peer's, before it is delivered.
func (s *Stream) arrived(request bool) {
	if s.unconfirmed.Load() == request { // a store costs more
		s.unconfirmed.Store(!request)
	}
}

// A Signature is the STag and the TO of an RDMA Write of no octets. They name no memory:
// no receiver may check them (RFC 5041 §5.2), and no ULP sees them.
type Signature struct {
	STag uint32
	TO   uint64
}

// Nudge sends an empty RDMA Write behind the message that is being sent. It belongs to
// no operation, and its only effect at the peer is that something has arrived (RFC
// 5040 §5.1). The end of the stream goes before it.
func (s *Stream) Nudge() {
	s.nudges.Store(true)
	s.Kick()
}

// Close ends the outgoing half gracefully, when all that is under way has been
// sent and the peer's requests are answered. From now on every message of the
// peer but a Terminate is an error (Verbs §6.2.5). It takes effect with the
// next Kick.
func (s *Stream) Close() { s.closing.Store(true) }

// Abandon ends the outgoing half at the next boundary of a segment, without a
// Terminate message, because the peer has sent one. It takes effect with the next
// Kick.
func (s *Stream) Abandon() {
	s.abandoned.Store(true)
	s.Close()
}

// PeerClosed notes that the peer's half has ended. Config.PeerClosed follows
// from the next Kick.
func (s *Stream) PeerClosed() { s.peerClosed.Store(true) }

// Stop makes sure that nothing is sent any more and that no goroutine is in
// the outgoing half. The caller has reset or closed the LLP, and is not one of
// the ULP's methods.
func (s *Stream) Stop() {
	s.stop.Do(func() {
		s.stopped.Store(true)
		close(s.done)
	})
	s.out.owner.Lock()
	s.out.dead = true
	s.out.owner.Unlock()
}

// Idle reports that no request of the peer waits to be answered.
func (s *Stream) Idle() bool { return s.requests.len() == 0 }

// Answered returns a channel that is closed when Idle is true.
func (s *Stream) Answered() <-chan struct{} { return s.requests.drained() }

// SetIRD changes the number of RDMA Reads and atomics that the peer may have
// outstanding (Verbs §6.5). Those beyond it that have arrived are answered.
func (s *Stream) SetIRD(n int) { s.requests.resize(n) }

// SetORD changes the number of those that this side may have outstanding. It
// takes effect with the next request, or with the next Kick if one waits.
func (s *Stream) SetORD(n int) { s.responses.resize(n) }

// ORD is the number of those that this side may have outstanding.
func (s *Stream) ORD() int { return int(s.responses.limit.Load()) }

// Reader receives until the stream ends and says why: io.EOF when the peer
// closed between messages, ErrUnfinished when it closed within one, a
// *TerminateError when the peer terminated the stream, otherwise what was wrong. It
// sends nothing; Terminate does.
func (s *Stream) Reader() error { return s.in.run() }
