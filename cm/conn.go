package cm

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

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

// Close closes the connection gracefully, see [verbs.QP.Close].
func (c *Conn) Close(ctx context.Context) error { return c.qp.Close(ctx) }

// readyTimeout bounds the wait for the message that opens a peer-to-peer
// stream.
const readyTimeout = 10 * time.Second

// establish hands a stream over to a queue pair.
func establish(qp *verbs.QP, mc *mpa.Conn, cfg mpa.Config, privateData []byte) (*Conn, error) {
	p := mc.Params()
	terms := verbs.Terms{
		IRD: agreed(p.IRD, cfg.IRD), ORD: agreed(p.ORD, cfg.ORD),
		Initiator: p.Initiator,
	}
	if p.PeerToPeer {
		terms.RTR = p.RTR
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
