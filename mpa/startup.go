// This file holds what both roles of start-up share (RFC 5044 §7.1, RFC 6581):
// the configuration, what is learnt of the peer, and the waits.

package mpa

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"github.com/weft-rdma/weft/internal/panics"
)

// A Profile says which revisions of MPA a side speaks. Revision 0 never
// appears on a stream together with another one (RFC 5044 appendix C.1).
type Profile uint8

const (
	// ProfileIETF offers revision 2, enhanced, and accepts 1 and 2. It offers
	// revision 1 when nothing enhanced is wanted: both IRD and ORD are
	// NotNegotiated and the model is not peer-to-peer (RFC 6581 §10).
	ProfileIETF Profile = iota
	// ProfileRFC5044 offers revision 1 and knows nothing of RFC 6581: an
	// enhanced Request is closed without a Reply.
	ProfileRFC5044
	// ProfileRDMAC is an RNIC of the RDMA Consortium: revision 0 with CRC and
	// Markers in both directions, and DDP and RDMAP version 0.
	ProfileRDMAC
	// ProfilePermissive is RFC 5044's permissive IETF RNIC (appendix C.2.3).
	// As Initiator it offers revision 1 and turns to 0 when the Reply says so;
	// as Responder it accepts 0, 1 and 2.
	ProfilePermissive
)

var profileNames = [...]string{
	ProfileIETF:       "IETF",
	ProfileRFC5044:    "RFC 5044",
	ProfileRDMAC:      "RDMA Consortium",
	ProfilePermissive: "permissive",
}

func (p Profile) String() string {
	if int(p) < len(profileNames) {
		return profileNames[p]
	}
	return fmt.Sprintf("unknown profile %d", uint8(p))
}

// Time limits of start-up when Config has none.
const (
	DefaultReplyTimeout    = 20 * time.Second
	DefaultRequestTimeout  = 10 * time.Second
	DefaultDecisionTimeout = 30 * time.Second
)

// A Config says what this side offers and how long it waits. The zero value
// offers revision 2, accepts 1 and 2, asks for CRC and for no Markers, and has
// no use for RDMA Reads.
type Config struct {
	Profile Profile

	NoCRC   bool // do not ask for CRC; it is used all the same if the peer asks
	Markers bool // ask for Markers in what we receive

	// PeerToPeer asks, as Initiator, for the model in which the stack sends an
	// RTR first (RFC 6581 §9.2). A Responder follows the Request.
	PeerToPeer bool
	// RTR are the kinds of RTR that this side can send, or take; none means
	// RTRAny, because RFC 6581 §9.2 wants at least one.
	RTR RTR

	// IRD and ORD are the RDMA Reads at a time that this side takes and wants
	// to make; NotNegotiated leaves a value to the ULP. MaxIRD is what IRD may
	// grow to when the peer wants more; below IRD it means IRD.
	IRD, ORD uint16
	MaxIRD   uint16

	// Time limits; 0 is the default, negative is none.
	ReplyTimeout    time.Duration // Initiator: from the Request to the whole Reply
	RequestTimeout  time.Duration // Responder: from Await to the whole Request
	DecisionTimeout time.Duration // Responder: from the Request to the whole Reply, the ULP's decision included

	// Of one connection that its consumers have used before, in streaming mode:
	// StreamMessage is what is still to be sent before the start-up frame, and
	// Early are octets behind the peer's last that were read already. They are
	// the beginning of its frame.
	StreamMessage []byte
	Early         []byte

	// For Params.
	MaxULPDU int

	// ReadBuffer limits the read-ahead buffer, in octets: 0 is 512 KiB, less
	// than 64 KiB is 64 KiB, and what is no power of two the next one below.
	ReadBuffer int
}

// check refuses a configuration that start-up could not put on the wire.
func (c *Config) check() error {
	switch {
	case int(c.Profile) >= len(profileNames):
		return fmt.Errorf("mpa: %v", c.Profile)
	case c.RTR&^RTRAny != 0:
		return fmt.Errorf("mpa: unknown RTR kind in %#x", uint8(c.RTR))
	case c.PeerToPeer && c.Profile != ProfileIETF:
		return fmt.Errorf("mpa: peer-to-peer needs %v, the %v profile does not offer it", Revision2, c.Profile)
	case c.IRD > NotNegotiated || c.MaxIRD > NotNegotiated || c.ORD > NotNegotiated:
		return fmt.Errorf("mpa: IRD %d, MaxIRD %d, ORD %d: the limit is %d", c.IRD, c.MaxIRD, c.ORD, NotNegotiated)
	case c.MaxULPDU != 0 && (c.MaxULPDU < MinMULPDU || c.MaxULPDU > MaxMULPDU):
		return fmt.Errorf("mpa: MaxULPDU %d, expected 0 or %d to %d", c.MaxULPDU, MinMULPDU, MaxMULPDU)
	}
	return nil
}

// CheckRequest refuses what Initiate would: a configuration that cannot be put on
// the wire, and privateData that do not fit beside it (ErrPrivateData).
func (c *Config) CheckRequest(privateData []byte) error {
	return errors.Join(c.check(), checkPrivateData(privateData, request(c, privateData).Enhanced))
}

func (c *Config) rtr() RTR {
	if c.RTR == 0 {
		return RTRAny
	}
	return c.RTR
}

// enhances reports whether a function of RFC 6581 is wanted. An IRD of 0 is one:
// it keeps the peer from RDMA Reads.
func (c *Config) enhances() bool {
	return c.Profile == ProfileIETF && (c.PeerToPeer || c.IRD != NotNegotiated || c.ORD != NotNegotiated)
}

func (c *Config) maxIRD() uint16 { return max(c.IRD, c.MaxIRD) }

// Peer is what the other side's start-up frame said.
type Peer struct {
	Revision   Revision
	CRC        bool // it asked for CRC
	Markers    bool // it asked for Markers in what we send
	Enhanced   bool
	PeerToPeer bool
	RTR        RTR
	// IRD and ORD as they stood in the frame; NotNegotiated if it had none
	// (RFC 6581 §9.1: passed to the ULP).
	IRD, ORD    uint16
	PrivateData []byte
}

func newPeer(f Frame) Peer {
	return Peer{
		Revision:    f.Revision,
		CRC:         f.CRC,
		Markers:     f.Markers,
		Enhanced:    f.Enhanced,
		PeerToPeer:  f.PeerToPeer,
		RTR:         f.RTR,
		IRD:         f.IRD,
		ORD:         f.ORD,
		PrivateData: f.PrivateData,
	}
}

// A RejectError is a Responder's ULP refusing the connection. MPA is over, the
// connection is open and the caller's (RFC 5044 §7.1.2 rule 3).
type RejectError struct {
	PrivateData []byte
	// PeerIRD is the IRD that the peer would set, PeerORD the ORD that it
	// needs; NotNegotiated if the Reply had none (RFC 6581 §9.1).
	PeerIRD, PeerORD uint16
	// Hint is what of the Request it may be about, going by the Reply: its
	// revision, the Markers it asked for, too small an IRD; or empty. Private data
	// say it better.
	Hint string
}

func (e *RejectError) Error() string {
	s := fmt.Sprintf("mpa: the peer rejected the connection, %d octets of private data", len(e.PrivateData))
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// A wait bounds what start-up does on a connection by a context and a time
// limit, by way of the connection's deadlines.
type wait struct {
	ctx    context.Context
	cancel context.CancelFunc
	nc     net.Conn
	what   string // the frame that is waited for, or empty
	stop   func() bool
	fired  chan struct{} // closed when the deadline was set
	sent   bool          // this side's whole frame has left
}

// past is a deadline that fails what is under way at once.
var past = time.Unix(1, 0)

// begin starts a wait for what, a frame, of at most limit; a negative limit is none.
func begin(ctx context.Context, nc net.Conn, limit time.Duration, what string) *wait {
	w := &wait{nc: nc, what: what, fired: make(chan struct{})}
	if limit < 0 {
		w.ctx, w.cancel = context.WithCancel(ctx)
	} else {
		w.ctx, w.cancel = context.WithTimeoutCause(ctx, limit, timeoutError(limit))
	}
	nc.SetDeadline(time.Time{})
	w.stop = context.AfterFunc(w.ctx, func() {
		defer panics.Recover()
		defer close(w.fired)
		if nc.SetDeadline(past) != nil {
			nc.Close() // no deadlines here: nothing else wakes a Read
		}
	})
	return w
}

// end ends the wait and leaves the connection without a deadline.
func (w *wait) end() {
	if !w.stop() {
		<-w.fired
		w.nc.SetDeadline(time.Time{})
	}
	w.cancel()
}

// fault turns an error of the connection into an *Error. If the wait has ended it names why
// as the cause.
func (w *wait) fault(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	detail := "during start-up"
	if cause := context.Cause(w.ctx); cause != nil {
		err = cause
		if w.what != "" {
			detail = "while it was to send an " + w.what
		}
	}
	return &Error{Code: CodeClosed, Detail: detail, Err: err}
}

// writeStreamMessage sends the last octets of the streaming mode, before the start-up frame.
func (w *wait) writeStreamMessage(message []byte) error {
	if len(message) == 0 {
		return nil
	}
	_, err := w.nc.Write(message)
	return err
}

// readFrame reads a start-up frame of which early are the first octets, and returns
// those of them that are behind it.
func (w *wait) readFrame(early []byte, want FrameKind) (f Frame, n int, rest []byte, err error) {
	if len(early) == 0 {
		pollStartup(w.nc)
	}
	first := bytes.NewReader(early)
	f, n, err = readFrame(io.MultiReader(first, w.nc), want)
	return f, n, early[len(early)-first.Len():], err
}

// write sends a start-up frame, and nothing else, in one piece. siw refuses
// a frame with more octets behind it.
func (w *wait) write(f Frame) error {
	b, err := AppendFrame(make([]byte, 0, maxFrame), f)
	if err != nil {
		return err
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	n, err := w.nc.Write(b)
	w.sent = n == len(b)
	return err
}

// drop closes the connection of a start-up that has failed, after the wait. If
// the whole frame has left, the peer may be in Full Operation: it must not take the end for
// a graceful one.
func (w *wait) drop() {
	if w.sent {
		_ = reset(w.nc)
	} else {
		_ = w.nc.Close()
	}
}

func timeoutError(limit time.Duration) error {
	return fmt.Errorf("nothing within %v: %w", limit, os.ErrDeadlineExceeded)
}

// limitOr is the time limit set, or the default.
func limitOr(set, def time.Duration) time.Duration {
	if set == 0 {
		return def
	}
	return set
}
