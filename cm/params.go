package cm

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// Params are one side's wishes for a connection. The zero value is useful.
type Params struct {
	// PrivateData goes to the peer's consumer with the start-up frame: up to
	// 508 octets, 512 without the enhancements of RFC 6581. (Linux takes 252.)
	// More is refused with mpa.ErrPrivateData, before anything is sent.
	PrivateData []byte

	// MPA holds everything about the start-up and the stream that is not the
	// default: CRC, markers, peer-to-peer, revision, time limits, FPDU size.
	// IRD and ORD in it, if 0, are the queue pair's.
	MPA mpa.Config

	// Fallback dials again, with the unenhanced start-up of RFC 5044, when the
	// peer closes the connection on an enhanced request (RFC 6581 §10).
	Fallback bool

	// Nudge is for who dials, and waits for an answer to the first message: after
	// so long without one the peer is sent an empty RDMA Write, which neither
	// consumer sees, and then four more, each after three times as long. 0 is
	// never. Linux siw leaves a first message that comes within microseconds of
	// its reply unread until more comes, so that both sides may wait for ever. A
	// peer that closes in place of an answer may see the nudge as a Bad Close.
	Nudge time.Duration

	// Socket holds the options of the TCP socket that Dial opens or Connect gets.
	Socket Socket

	// Wrap, if not nil, is put around the connection before start-up: TLS, or
	// a capture.
	Wrap func(net.Conn) net.Conn
}

// DefaultNudge is the Nudge of those to whom every first message is a question, as
// package rpcrdma's clients.
const DefaultNudge = 20 * time.Millisecond

// config is the start-up's configuration for a queue pair.
func (p *Params) config(qp *verbs.QP) (mpa.Config, error) {
	cfg := p.MPA
	q, err := qp.Query()
	if err != nil {
		return cfg, fmt.Errorf("cm: %w", err)
	}
	if cfg.IRD == 0 {
		cfg.IRD = uint16(q.IRD)
	}
	if cfg.ORD == 0 {
		cfg.ORD = uint16(q.ORD)
	}
	a, err := qp.RNIC().Query()
	if err != nil {
		return cfg, fmt.Errorf("cm: %w", err)
	}
	l := &a.Limits
	switch {
	case cfg.IRD != mpa.NotNegotiated && int(cfg.IRD) > l.IRD:
		return cfg, fmt.Errorf("cm: %w: %d was asked for, the limit is %d (Limits.IRD)", verbs.ErrIRD, cfg.IRD, l.IRD)
	case cfg.ORD != mpa.NotNegotiated && int(cfg.ORD) > l.ORD:
		return cfg, fmt.Errorf("cm: %w: %d was asked for, the limit is %d (Limits.ORD)", verbs.ErrORD, cfg.ORD, l.ORD)
	}
	cfg.MaxIRD = min(cfg.MaxIRD, uint16(l.IRD))
	return cfg, nil
}

// check refuses what Dial could not ask for.
func (p *Params) check(qp *verbs.QP, network string) error {
	if err := checkNetwork(network); err != nil {
		return fmt.Errorf("cm: dial: %w", err)
	}
	cfg, err := p.config(qp)
	if err != nil {
		return err
	}
	if err := cfg.CheckRequest(p.PrivateData); err != nil {
		return fmt.Errorf("cm: dial: %w", err)
	}
	return nil
}

// checkNetwork refuses the networks of package net that have no streams.
func checkNetwork(network string) error {
	switch network {
	case "tcp", "tcp4", "tcp6", "unix":
		return nil
	}
	return fmt.Errorf(`%w: RDMA needs a stream: "tcp", "tcp4", "tcp6" or "unix"`, net.UnknownNetworkError(network))
}

func wrapped(nc net.Conn, wrap func(net.Conn) net.Conn) net.Conn {
	if wrap != nil {
		return wrap(nc)
	}
	return nc
}

// A RejectedError says that the peer's consumer refused the connection.
type RejectedError struct {
	Addr        net.Addr // the peer
	PrivateData []byte   // what it said
	Err         *mpa.RejectError
}

func (e *RejectedError) Error() string {
	s := fmt.Sprintf("cm: %v rejected the connection (%d octets of private data)", e.Addr, len(e.PrivateData))
	if e.Err != nil && e.Err.Hint != "" {
		s += ": " + e.Err.Hint
	}
	return s
}

func (e *RejectedError) Unwrap() error { return e.Err }

// Errors of this package, to be told apart with errors.Is.
var (
	// ErrNotIdle: the queue pair is not in the Idle state, in which alone it
	// can be connected.
	ErrNotIdle = errors.New("queue pair is not Idle: Reset it, or create another")
	// ErrClosed: the listener has been closed. It is net.ErrClosed, too.
	ErrClosed error = closedError{}
)

// A closedError is ErrClosed.
type closedError struct{}

func (closedError) Error() string        { return "cm: listener closed" }
func (closedError) Is(target error) bool { return target == net.ErrClosed }

func checkIdle(qp *verbs.QP) error {
	if s := qp.State(); s != verbs.Idle {
		return fmt.Errorf("cm: %w (it is %v)", ErrNotIdle, s)
	}
	return nil
}
