package cm

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weft-rdma/weft/ddp"
	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// MPA over TCP is the LLP of the streams made here.
var _ ddp.LLP = (*mpa.Conn)(nil)

// A Conn is an established RDMA connection. Its methods may be called by any
// goroutine.
type Conn struct {
	qp          *verbs.QP
	mpa         *mpa.Conn
	privateData []byte
	terms       verbs.Terms
}

// QP is the queue pair that was connected.
func (c *Conn) QP() *verbs.QP { return c.qp }

// PrivateData is what the peer said when it asked or accepted.
func (c *Conn) PrivateData() []byte { return c.privateData }

// IRD is the number of RDMA Reads and atomics that the peer may have
// outstanding, as agreed.
func (c *Conn) IRD() int { return c.terms.IRD }

// ORD is the number of those that this side may have.
func (c *Conn) ORD() int { return c.terms.ORD }

// MPA returns the terms of the stream.
func (c *Conn) MPA() mpa.Params { return c.mpa.Params() }

// Stats returns what has passed over the stream.
func (c *Conn) Stats() mpa.Stats { return c.mpa.Stats() }

// LocalAddr and RemoteAddr are those of the connection below.
func (c *Conn) LocalAddr() net.Addr { return c.mpa.LocalAddr() }

// RemoteAddr is the peer's address.
func (c *Conn) RemoteAddr() net.Addr { return c.mpa.RemoteAddr() }

// Close closes the connection gracefully, as Shutdown does, for no longer than
// the CloseTimeout of the RNIC (5 s by default): a peer that leaves work without
// an answer for so long is reset, and Close fails with context.DeadlineExceeded.
// A connection that has been closed gracefully, by either side, stays so.
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

// Shutdown closes the connection gracefully: it waits for what is outstanding for as
// long as the context lasts, and resets the stream then. See [verbs.QP.Close].
func (c *Conn) Shutdown(ctx context.Context) error { return c.qp.Close(ctx) }

// readyTimeout bounds the wait for the message that opens a peer-to-peer
// stream.
const readyTimeout = 10 * time.Second

// establish hands a stream over to a queue pair.
func establish(qp *verbs.QP, mc *mpa.Conn, cfg mpa.Config, nudge time.Duration, privateData []byte) (*Conn, error) {
	p := mc.Params()
	terms := verbs.Terms{
		IRD: agreed(p.IRD, cfg.IRD), ORD: agreed(p.ORD, cfg.ORD),
		Initiator: p.Initiator, Nudge: nudge,
	}
	if p.PeerToPeer {
		terms.RTR = opening(p.RTR)
	}
	if err := qp.Establish(mc, terms); err != nil {
		if p.Initiator {
			// RFC 6581 §9.3. A responder may not send anything yet.
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

// agreed is the value that start-up agreed on, or our own if it was left to the
// consumers.
func agreed(v, own uint16) int {
	if v == mpa.NotNegotiated {
		v = own
	}
	if v == mpa.NotNegotiated {
		return 0
	}
	return int(v)
}

// ready waits for the peer's first message.
func (c *Conn) ready(ctx context.Context) error {
	late := fmt.Errorf("nothing within %v: %w", readyTimeout, context.DeadlineExceeded)
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, late)
	defer cancel()
	changed := make(chan error, 1)
	go func() {
		// Not Terminate and Closing: what is said then has to reach the peer.
		_, err := c.qp.WaitState(ctx, verbs.Idle, verbs.Error)
		changed <- err
	}()
	var err error
	select {
	case <-c.qp.Ready():
		cancel()
		<-changed
		return nil
	case err = <-changed:
	}
	if err != nil {
		c.qp.Abort()
		err = context.Cause(ctx)
	} else {
		err = cmp.Or(c.qp.Err(), io.EOF) // the peer closed as if all were well
	}
	return fmt.Errorf("cm: the peer's ready-to-receive message did not come: %w", err)
}
