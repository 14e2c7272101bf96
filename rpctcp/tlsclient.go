// The client's part of RPC with TLS: the probe, and when a call fails because of it.

package rpctcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

// Why a client with TLS does not use a connection. Calls get them as the cause of a
// *oncrpc.RejectError.
var (
	// ErrNoTLS: the server does not offer TLS.
	ErrNoTLS = errors.New("rpctcp: the server does not offer TLS")

	// ErrALPN: the server has not chosen the protocol sunrpc. See ClientConfig.AnyALPN.
	ErrALPN = errors.New("rpctcp: the server has not chosen the protocol sunrpc by ALPN")
)

// probeRecord limits the reply to a probe, in octets: it has no results.
const probeRecord = 1 << 10

// clientProfile returns the configuration of a client with TLS. The server has to have
// the name of its address, unless the configuration has another.
func clientProfile(cfg *tls.Config, address string) (*tls.Config, error) {
	cfg, err := profile(cfg)
	if err != nil {
		return nil, err
	}
	if cfg.ServerName == "" {
		host, _, err := net.SplitHostPort(address)
		if err != nil && !cfg.InsecureSkipVerify {
			return nil, errors.New("rpctcp: the TLS configuration needs the ServerName")
		}
		cfg.ServerName, _, _ = strings.Cut(host, "%") // the zone is this host's alone
	}
	return cfg, nil
}

// secured makes TLS over a new connection. It returns nil if the server does not offer
// TLS and need not.
func (c *Client) secured(ctx context.Context, nc net.Conn) (*secured, error) {
	limit := time.Now().Add(c.cfg.DialTimeout)
	if err := nc.SetDeadline(limit); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { nc.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	reply, err := c.probe(nc)
	if err != nil {
		return nil, fmt.Errorf("rpctcp: asking for TLS: %w", err)
	}
	if !isStartTLS(reply) {
		if c.cfg.TLSOptional {
			c.cfg.Logger.Info("connection not encrypted: the server does not offer TLS", "to", nc.RemoteAddr())
			return nil, nc.SetDeadline(time.Time{})
		}
		return nil, refusedTLS(fmt.Errorf("%w%s", ErrNoTLS, replied(reply)))
	}
	below := &belowTLS{Conn: nc, first: []byte{handshakeTLS, alertTLS}, most: c.setting.mostRecords}
	conn := tls.Client(below, c.cfg.TLS)
	if err := conn.HandshakeContext(ctx); err != nil {
		if ctx.Err() != nil || transient(err) {
			return nil, fmt.Errorf("rpctcp: TLS handshake: %w", err)
		}
		return nil, refusedTLS(err)
	}
	s := newSecured(conn, below)
	if s.state.NegotiatedProtocol != protocolTLS && !c.cfg.AnyALPN {
		s.close(grace)
		return nil, refusedTLS(ErrALPN)
	}
	if !stop() {
		return nil, ctx.Err()
	}
	c.cfg.Logger.Info("connection secured", "to", nc.RemoteAddr(), "cipher", tls.CipherSuiteName(s.state.CipherSuite), "alpn", s.state.NegotiatedProtocol)
	return s, nc.SetDeadline(time.Time{})
}

// isStartTLS reports whether a reply agrees to TLS: its accept_stat does not matter (RFC
// 9289 §4.1).
func isStartTLS(r *oncrpc.Reply) bool {
	return r.Stat == oncrpc.MsgAccepted && r.Verf.Flavor == oncrpc.FlavorNone && bytes.Equal(r.Verf.Body, []byte(startTLS))
}

// probe sends the probe and returns the reply. It reads no octet behind that.
func (c *Client) probe(nc net.Conn) (*oncrpc.Reply, error) {
	call := oncrpc.Call{
		XID: rand.Uint32(), Prog: cmp.Or(c.cfg.Prog, oncrpc.PmapProg), Vers: cmp.Or(c.cfg.Vers, oncrpc.PmapVers),
		Cred: oncrpc.OpaqueAuth{Flavor: oncrpc.FlavorTLS},
	}
	message, err := call.Append(nil)
	if err != nil {
		return nil, err
	}
	if err := oncrpc.NewRecordWriter(nc, 0).WriteRecord(message); err != nil {
		return nil, err
	}
	limits := oncrpc.RecordLimits{Record: probeRecord, Fragments: 8}
	b, err := oncrpc.NewRecordReader(nc, limits).AppendRecord(nil)
	if err != nil {
		return nil, err
	}
	reply := new(oncrpc.Reply)
	if _, err := reply.Parse(b); err != nil {
		return nil, err
	}
	if reply.XID != call.XID {
		return nil, errors.New("the reply is to another call")
	}
	return reply, nil
}

// replied says how a server has answered a probe that it does not agree to.
func replied(r *oncrpc.Reply) string {
	if err := r.Err(); err != nil {
		return fmt.Sprintf(" (%v)", err)
	}
	return ""
}

// refusedTLS is the error of calls that get no connection with TLS: RFC 9289 §4.1 has it
// reported like a rejection by the server.
func refusedTLS(err error) error {
	return &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthFailed, Err: err}
}

// transient reports whether a handshake has failed by the loss of the connection, so that
// another attempt may be worth while.
func transient(err error) bool {
	if isAlert(err) {
		return false
	}
	var timeout net.Error
	var op *net.OpError
	return errors.As(err, &timeout) && timeout.Timeout() || errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// isAlert reports whether an error is an alert of TLS by the peer.
func isAlert(err error) bool { return alertOf(err) != nil }

// alertOf returns the alert in an error, or nil.
func alertOf(err error) error {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op
	}
	return nil
}

// refused returns the error of a call whose connection the server has ended by an alert,
// or nil. With TLS 1.3 that is how it refuses the certificate of a client: the client's
// part of the handshake is over by then.
func refused(err error) error {
	if alert := alertOf(err); alert != nil {
		return refusedTLS(alert)
	}
	return nil
}

// isRefusal reports whether an attempt to connect has failed by what another one would not
// change.
func isRefusal(err error) bool {
	var reject *oncrpc.RejectError
	return errors.As(err, &reject)
}
