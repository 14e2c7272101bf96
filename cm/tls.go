// TLS below MPA, by the profile in docs/tls.md: TLS 1.3 with ALPN "iwarp". The handshake
// comes before the first octet of MPA, and its time counts as start-up's.

package cm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// ErrPlain: the peer uses MPA without TLS, and this side does not.
var ErrPlain = errors.New("the peer uses MPA without TLS, and this side requires TLS")

// A TLSError reports that there is no TLS connection with the peer, or that the peer has
// ended it with an alert: mostly since one side does not accept the certificate of the
// other.
type TLSError struct{ Err error }

func (e *TLSError) Error() string { return "TLS: " + e.Err.Error() }
func (e *TLSError) Unwrap() error { return e.Err }

// ErrKeyLimit: an AES-GCM key of the connection has protected as many TLS records as
// it may (RFC 8446 §5.5). Connect again; see [Conn.KeyLimitNear].
var ErrKeyLimit = errors.New("the key of this TLS connection is used up (RFC 8446 §5.5): connect again")

// alpn is the name of the profile (RFC 7301).
const alpn = "iwarp"

// profile returns the configuration that the profile makes of the user's.
func profile(cfg *tls.Config) *tls.Config {
	c := cfg.Clone()
	c.MinVersion, c.MaxVersion = tls.VersionTLS13, tls.VersionTLS13
	c.NextProtos = []string{alpn}
	// A record is written at once, so it need not begin small.
	c.DynamicRecordSizingDisabled = true
	// Each connection is authenticated by the certificates of its time.
	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil
	if get := cfg.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := get(h)
			if chosen != nil {
				chosen = profile(chosen)
			}
			return chosen, err
		}
	}
	return c
}

// clientProfile is profile for a connection to host, which is the name to verify unless
// the configuration has one.
func clientProfile(cfg *tls.Config, host string) *tls.Config {
	c := profile(cfg)
	if c.ServerName == "" {
		c.ServerName, _, _ = strings.Cut(host, "%") // without the zone of an address
	}
	return c
}

// hostOf returns the host of an address; "" if it has none.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return ""
	}
	return host
}

// hostBehind returns the address of the peer of a connection.
func hostBehind(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return hostOf(a.String())
	}
	return ""
}

// A budget is the time limit that several steps of start-up share.
type budget struct {
	limit time.Duration // negative is none
	began time.Time
}

// newBudget begins now. limit is that of an mpa.Config: 0 is the default.
func newBudget(limit, standard time.Duration) budget {
	if limit == 0 {
		limit = standard
	}
	return budget{limit, time.Now()}
}

// context returns a context that ends with the budget.
func (b budget) context(ctx context.Context) (context.Context, context.CancelFunc) {
	if b.limit < 0 {
		return context.WithCancel(ctx)
	}
	late := fmt.Errorf("nothing within %v: %w", b.limit, os.ErrDeadlineExceeded)
	return context.WithDeadlineCause(ctx, b.began.Add(b.limit), late)
}

// left returns what is left, as a limit of an mpa.Config.
func (b budget) left() time.Duration {
	if b.limit < 0 {
		return b.limit
	}
	return max(1, b.limit-time.Since(b.began))
}

// encrypt makes a TLS connection of nc, which it owns: it is closed after an error. A
// side is tls.Client or tls.Server; keyRecords is that of Params.
func encrypt(ctx context.Context, nc net.Conn, side func(net.Conn, *tls.Config) *tls.Conn, cfg *tls.Config, b budget, keyRecords uint64) (net.Conn, error) {
	ctx, cancel := b.context(ctx)
	defer cancel()
	below := newRecordConn(nc, keyRecords)
	c := side(below, cfg)
	err := c.HandshakeContext(ctx)
	if err == nil {
		if state := c.ConnectionState(); state.NegotiatedProtocol != alpn {
			err = fmt.Errorf("the peer did not ask for the protocol %q (ALPN)", alpn)
		} else {
			below.handshakeOver(state.CipherSuite)
			return &tlsConn{Conn: c, below: below}, nil
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	err = handshakeError(err, below)
	_ = nc.Close() // after a handshake that has failed there is nothing to say
	return nil, &TLSError{err}
}

// mpaBegins is how MPA begins in either direction, as far as it looks like the header of
// a record.
const mpaBegins = "MPA I"

// handshakeError says why a handshake failed.
func handshakeError(err error, below *recordConn) error {
	var header tls.RecordHeaderError
	switch {
	case errors.As(err, &header) && string(header.RecordHeader[:]) == mpaBegins:
		_, _ = below.Conn.Write(unexpected) // so that the peer can tell why, too
		return ErrPlain
	case below.in.octets == 0 && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		return fmt.Errorf("the peer closed the connection instead of an answer, as one does that uses MPA without TLS: %w", err)
	}
	if header.Msg != "" {
		return fmt.Errorf("the peer sent %q, which is not TLS", header.RecordHeader)
	}
	return err
}

// unexpected is the alert unexpected_message, fatal, in a plain record (RFC 8446 §6).
var unexpected = []byte{21, 3, 3, 0, 2, 2, 10}

// stateOf returns the state of the TLS connection that nc is or wraps; nil if there is
// none.
func stateOf(nc net.Conn) *tls.ConnectionState {
	for {
		switch c := nc.(type) {
		case interface{ ConnectionState() tls.ConnectionState }:
			s := c.ConnectionState()
			return &s
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}

// keyLimitOf returns what is closed when a key of the TLS connection that nc is or wraps
// nears its limit; nil if there is none.
func keyLimitOf(nc net.Conn) <-chan struct{} {
	for {
		switch c := nc.(type) {
		case *tlsConn:
			return c.below.near
		case interface{ NetConn() net.Conn }:
			nc = c.NetConn()
		default:
			return nil
		}
	}
}
