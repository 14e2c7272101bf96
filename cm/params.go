// This file is the terms that a side asks for, and their checks.

package cm

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/weft-rdma/weft/mpa"
	"github.com/weft-rdma/weft/verbs"
)

// Params are what one side asks for in a connection. The zero value is useful.
type Params struct {
	// PrivateData goes to the peer's consumer with the start-up frame: up to
	// 508 octets, 512 without the enhancements of RFC 6581. (Linux takes 252.)
	// More is refused with mpa.ErrPrivateData, before anything is sent.
	PrivateData []byte

	// MPA configures start-up and the stream: CRC, markers, peer-to-peer, revision,
	// time limits, FPDU size. Its IRD and ORD, if 0, are the queue pair's.
	MPA mpa.Config

	// Fallback dials again, with the unenhanced start-up of RFC 5044, if the peer
	// closes the connection in response to an enhanced request (RFC 6581 §10).
	Fallback bool

	// Nudge is for a dialer that waits for an answer to its first message. If
	// nothing has arrived after this time, an empty RDMA Write is sent, which neither
	// consumer sees, and then up to four more, each after three times as long. 0 is
	// never. Linux siw leaves a first message that arrives within microseconds of its
	// reply unread until more arrives, so both sides may wait forever. A peer that
	// closes instead of answering may take the nudge for a Bad Close.
	Nudge time.Duration

	// Socket holds the options of the TCP socket that Dial opens or Connect gets.
	Socket Socket

	// TLS, if not nil, encrypts the connection below MPA, by the profile of
	// docs/tls.md: TLS 1.3 with ALPN "iwarp", both whatever the configuration says. The
	// handshake comes before the MPA Request, and its time counts as start-up's
	// (MPA.ReplyTimeout). The peer's certificate is verified as in crypto/tls, for
	// ServerName or else for the host that Dial is given or the address of the peer.
	// If the peer uses MPA without TLS, the error is an ErrPlain where that can be told.
	//
	// With CRC the octets are protected twice: MPA.NoCRC leaves it out if the peer
	// agrees.
	TLS *tls.Config

	// KeyRecords limits the TLS records that are sent under one AES-GCM key. 0 is
	// 23,726,566, as RFC 8446 §5.5 says: 362 GiB in full records. The connection fails
	// with ErrKeyLimit when it is reached; Conn.KeyLimitNear tells before.
	KeyRecords uint64

	// Wrap, if not nil, is put around the connection before start-up, inside of TLS:
	// a capture, say.
	Wrap func(net.Conn) net.Conn
}

// DefaultNudge is the Nudge of clients whose first message is a request, as in package
// rpcrdma.
const DefaultNudge = 20 * time.Millisecond

// config returns the configuration of start-up for a queue pair.
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

// check returns an error for Params that Dial can't ask for.
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

// checkNetwork returns an error for networks of package net that have no streams.
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

// A RejectedError reports that the peer's consumer rejected the connection.
type RejectedError struct {
	Addr        net.Addr // the peer
	PrivateData []byte   // of the peer's reply
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

// Errors of this package, for errors.Is.
var (
	// ErrNotIdle: the queue pair can't be connected, because it is not in the Idle
	// state.
	ErrNotIdle = errors.New("queue pair is not Idle: Reset it, or create another")
	// ErrClosed: the listener has been closed. It also matches net.ErrClosed.
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
