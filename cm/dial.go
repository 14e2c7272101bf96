// This file is the initiator: it dials, starts MPA up, and checks the agreed terms.

package cm

import (
	"context"
	"crypto/tls"
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
// net.UnknownNetworkError. When it returns, the queue pair is in RTS. If the peer
// rejects the connection, the error is a *RejectedError; other errors name the step
// that failed. Invalid Params are an error before anything is sent.
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
	d.SetMultipathTCP(false) // it hides the segment size, to which MPA aligns FPDUs
	nc, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("cm: dial: %w", err)
	}
	secure, err := p.encrypt(ctx, nc, hostOf(addr))
	if err != nil {
		return nil, err
	}
	nc = wrapped(secure, p.Wrap)
	c, err := connect(ctx, qp, nc, p)
	if err != nil {
		_ = nc.Close() // closed already, except after a rejection
	}
	return c, err
}

// encrypt makes a TLS connection of nc, if p asks for that, and reduces the time limit of
// p by what it took. If it fails, nc is closed.
func (p *Params) encrypt(ctx context.Context, nc net.Conn, host string) (net.Conn, error) {
	if p.TLS == nil {
		return nc, nil
	}
	b := newBudget(p.MPA.ReplyTimeout, mpa.DefaultReplyTimeout)
	secure, err := encrypt(ctx, nc, tls.Client, clientProfile(p.TLS, host), b, p.KeyRecords)
	if err != nil {
		return nil, fmt.Errorf("cm: connect: %w", err)
	}
	p.MPA.ReplyTimeout = b.left()
	return secure, nil
}

// Connect is Dial over an existing connection, which it owns from then on, unless the
// error is ErrNotIdle or a *RejectedError. p.Socket is applied to the socket that nc
// is, or wraps and returns by a method NetConn() net.Conn; without a socket it has to
// be empty. p.Wrap is used with p.TLS only: what is around
// a plain connection is around nc. After a *RejectedError with p.TLS the only thing to do
// with nc is to close it.
func Connect(ctx context.Context, qp *verbs.QP, nc net.Conn, p Params) (*Conn, error) {
	if err := checkIdle(qp); err != nil {
		return nil, err
	}
	if err := p.Socket.applyBelow(nc); err != nil {
		_ = nc.Close() // nothing was sent
		return nil, err
	}
	secure, err := p.encrypt(ctx, nc, hostBehind(nc))
	if err != nil {
		return nil, err
	}
	if p.TLS != nil {
		secure = wrapped(secure, p.Wrap)
	}
	return connect(ctx, qp, secure, p)
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
		_ = nc.Close() // closed already, unless nothing was sent
		return nil, fmt.Errorf("cm: connect: %w", err)
	}
	return establish(qp, mc, cfg, p.Nudge, peer.PrivateData)
}

// refuseTimeout limits how long a Terminate to a peer with unacceptable terms may take.
const refuseTimeout = 2 * time.Second

// refuse sends a Terminate message that says why the stream ends before it began, and
// closes the stream.
func refuse(mc *mpa.Conn, err error) error {
	deadline := time.Now().Add(refuseTimeout)
	_ = mc.SetReadDeadline(deadline) // if it fails, the peer decides how long this takes
	_ = mc.SetWriteDeadline(deadline)
	return fmt.Errorf("cm: connect: %w", rdmap.Refuse(mc, err))
}
