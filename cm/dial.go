package cm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/rdmap"
	"github.com/weft-rdma/weft/verbs"
)

// Dial connects an Idle queue pair to a listener: network is "tcp", "tcp4" or
// "tcp6" and addr host:port, or "unix" and a path; any other network is a
// net.UnknownNetworkError. When it returns the queue pair is in RTS. A peer
// that refuses makes it fail with a *RejectedError; other errors say at which
// step the connection failed. Params that cannot be are refused before anybody
// is called.
func Dial(ctx context.Context, qp *verbs.QP, network, addr string, p Params) (*Conn, error) {
	if err := checkIdle(qp); err != nil {
		return nil, err
	}
	if err := p.check(qp, network); err != nil {
		return nil, err
	}
	c, err := dial(ctx, qp, network, addr, p)
	if p.Fallback && errors.Is(err, mpa.ErrUnanswered) {
		p.MPA.Profile = mpa.ProfileRFC5044
		p.MPA.PeerToPeer = false
		c, err = dial(ctx, qp, network, addr, p)
	}
	return c, err
}

func dial(ctx context.Context, qp *verbs.QP, network, addr string, p Params) (*Conn, error) {
	d := net.Dialer{Control: p.Socket.Control}
	d.SetMultipathTCP(false) // its segments are not what MPA aligns FPDUs with
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("cm: dial: %w", err)
	}
	c, err := connect(ctx, qp, wrapped(nc, p.Wrap), p)
	if err != nil {
		_ = nc.Close() // closed already but after a rejection
	}
	return c, err
}

// Connect is Dial over a connection that exists, which it owns from then on
// unless the error is that of a queue pair that is not Idle or a
// *RejectedError. p.Socket is applied to the socket that nc is or, by its method
// NetConn() net.Conn, wraps; it has to be empty if there is none. p.Wrap is not
// used.
func Connect(ctx context.Context, qp *verbs.QP, nc net.Conn, p Params) (*Conn, error) {
	if err := checkIdle(qp); err != nil {
		return nil, err
	}
	if err := p.Socket.applyBelow(nc); err != nil {
		_ = nc.Close() // nothing was said
		return nil, err
	}
	return connect(ctx, qp, nc, p)
}

func connect(ctx context.Context, qp *verbs.QP, nc net.Conn, p Params) (*Conn, error) {
	cfg, err := p.config(qp)
	if err != nil {
		_ = nc.Close()
		return nil, err
	}
	mc, peer, err := mpa.Initiate(ctx, nc, cfg, p.PrivateData)
	var rejected *mpa.RejectError
	switch {
	case errors.As(err, &rejected):
		return nil, &RejectedError{Addr: nc.RemoteAddr(), PrivateData: rejected.PrivateData, Err: rejected}
	case err != nil && mc != nil:
		return nil, refuse(mc, err)
	case err != nil:
		_ = nc.Close() // closed already unless there was nothing to be sent
		return nil, fmt.Errorf("cm: connect: %w", err)
	}
	return establish(qp, mc, cfg, p.Nudge, peer.PrivateData)
}

// refuseTimeout bounds the farewell to a peer whose terms cannot be met.
const refuseTimeout = 2 * time.Second

// refuse tells the peer by a Terminate message why the stream ends before it
// began, and closes it.
func refuse(mc *mpa.Conn, err error) error {
	deadline := time.Now().Add(refuseTimeout)
	_ = mc.SetReadDeadline(deadline) // without deadlines the peer decides how long it takes
	_ = mc.SetWriteDeadline(deadline)
	return fmt.Errorf("cm: connect: %w", rdmap.Refuse(mc, err))
}
