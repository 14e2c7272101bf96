// This file is the established connection.

package cm

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/internal/listening"
	"github.com/weft-rdma/weft/internal/panics"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// MPA over TCP is the LLP of the streams made here. It has all that an LLP may have.
var (
	_ ddp.LLP               = (*mpa.Conn)(nil)
	_ ddp.EstablishedLLP    = (*mpa.Conn)(nil)
	_ ddp.StreamingLLP      = (*mpa.Conn)(nil)
	_ ddp.AddressedLLP      = (*mpa.Conn)(nil)
	_ ddp.SpinningLLP       = (*mpa.Conn)(nil)
	_ ddp.ExpectingLLP      = (*mpa.Conn)(nil)
	_ ddp.NonBlockingLLP    = (*mpa.Conn)(nil)
	_ ddp.WaitableLLP       = (*mpa.Conn)(nil)
	_ ddp.LLPError          = (*mpa.Error)(nil)
	_ ddp.UnreadableSegment = (*mpa.MemoryError)(nil)

	_ mpa.BlockingSink = (*ddp.Receiver)(nil)
)

// A Conn is an established RDMA connection. Its methods may be called by any
// goroutine.
type Conn struct {
	qp          *verbs.QP
	mpa         *mpa.Conn
	privateData []byte
	terms       verbs.Terms
}

// QP returns the queue pair that was connected.
func (c *Conn) QP() *verbs.QP { return c.qp }

// PrivateData returns the private data of the peer's request or reply.
func (c *Conn) PrivateData() []byte { return c.privateData }

// IRD returns the agreed number of RDMA Reads and atomics that the peer may have
// outstanding.
func (c *Conn) IRD() int { return c.terms.IRD }

// ORD returns the agreed number that this side may have outstanding.
func (c *Conn) ORD() int { return c.terms.ORD }

// MPA returns the negotiated terms of the stream.
func (c *Conn) MPA() mpa.Params { return c.mpa.Params() }

// Stats returns the stream's counters.
func (c *Conn) Stats() mpa.Stats { return c.mpa.Stats() }

// LocalAddr returns the local address of the connection.
func (c *Conn) LocalAddr() net.Addr { return c.mpa.LocalAddr() }

// RemoteAddr returns the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.mpa.RemoteAddr() }

// TLS returns the state of the TLS connection below MPA, with the certificate that the
// peer has presented; nil if the connection is not encrypted.
func (c *Conn) TLS() *tls.ConnectionState { return stateOf(c.mpa.NetConn()) }

// KeyLimitNear returns a channel that is closed when either side has sent three quarters
// of the TLS records that one key may protect (Params.KeyRecords): a connection that is to
// last has to be replaced by another soon. It is nil if the connection is not encrypted by
// Params.TLS or ListenConfig.TLS.
func (c *Conn) KeyLimitNear() <-chan struct{} { return keyLimitOf(c.mpa.NetConn()) }

// Close is Shutdown with the RNIC's CloseTimeout (5 s by default) for a limit. If the
// peer has left work unanswered by then, the connection is reset and Close fails with
// context.DeadlineExceeded. Close of a connection that either side has closed
// gracefully succeeds.
func (c *Conn) Close() error {
	a, err := c.qp.RNIC().Query()
	if err != nil {
		return fmt.Errorf("cm: close: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.CloseTimeout)
	defer cancel()
	err = c.Shutdown(ctx)
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("cm: close: not over within %v, and reset: %w", a.CloseTimeout, err)
	}
	return err
}

// Shutdown closes the connection gracefully: it waits for what is outstanding, and
// resets the stream if the context ends first. See [verbs.QP.Close].
func (c *Conn) Shutdown(ctx context.Context) error { return c.qp.Close(ctx) }

// readyTimeout limits the wait for the first message of a peer-to-peer stream.
const readyTimeout = 10 * time.Second

// establish hands a stream to a queue pair.
func establish(qp *verbs.QP, mc *mpa.Conn, cfg mpa.Config, nudge time.Duration, privateData []byte) (*Conn, error) {
	p := mc.Params()
	terms := verbs.Terms{
		IRD: agreed(p.IRD, cfg.IRD), ORD: agreed(p.ORD, cfg.ORD),
		Initiator: p.Initiator, Nudge: nudge,
	}
	if p.PeerToPeer {
		terms.RTR = opening(p.RTR)
	}
	if err := listening.OfQP(qp).Establish(mc, terms); err != nil {
		if p.Initiator {
			// RFC 6581 §9.3. A responder can't send a Terminate yet.
			return nil, refuse(mc, &mpa.Error{Code: mpa.CodeCatastrophic, Detail: "the stream has no queue pair", Err: err})
		}
		_ = mc.Reset()
		return nil, fmt.Errorf("cm: accept: %w", err)
	}
	return &Conn{qp: qp, mpa: mc, privateData: privateData, terms: terms}, nil
}

// opening is RFC 6581's set of ready-to-receive messages as RDMAP knows it.
func opening(set mpa.RTR) (rtr rdmap.RTR) {
	for _, kind := range [...]struct {
		mpa   mpa.RTR
		rdmap rdmap.RTR
	}{{mpa.RTRSend, rdmap.RTRSend}, {mpa.RTRWrite, rdmap.RTRWrite}, {mpa.RTRRead, rdmap.RTRRead}} {
		if set&kind.mpa != 0 {
			rtr |= kind.rdmap
		}
	}
	return rtr
}

// agreed returns the value that start-up negotiated, or this side's own if it was left
// to the consumers.
func agreed(v, own uint16) int {
	if v == mpa.NotNegotiated {
		v = own
	}
	if v == mpa.NotNegotiated {
		return 0
	}
	return int(v)
}

// waitReady waits for the peer's first message.
func (c *Conn) waitReady(ctx context.Context) error {
	late := fmt.Errorf("nothing within %v: %w", readyTimeout, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, late)
	defer cancel()
	changed := make(chan error, 1)
	go func() {
		defer panics.Recover()
		// Not for Terminate and Closing: their last message has to reach the peer.
		_, err := c.qp.WaitState(ctx, verbs.Idle, verbs.Error)
		changed <- err
	}()
	var err error
	select {
	case <-listening.OfQP(c.qp).Ready():
		cancel()
		<-changed
		return nil
	case err = <-changed:
	}
	if err != nil {
		c.qp.Abort()
		err = context.Cause(ctx)
	} else {
		err = cmp.Or(c.qp.Err(), io.EOF) // io.EOF: the peer closed gracefully
	}
	return fmt.Errorf("cm: the peer's ready-to-receive message did not come: %w", err)
}
