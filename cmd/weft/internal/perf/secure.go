// This file encrypts the control connection, as the RDMA connections are. Plain TCP, which
// they are compared with, stays plain.

package perf

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/weft-rdma/weft/cm"
)

// alpn names the protocol inside of TLS (RFC 7301), lest a connection for another service
// with the same certificates be taken for one of a driver.
const alpn = "weft-perf"

// Either end may be the only one with TLS.
var (
	errNeedsTLS = errors.New("this end requires TLS: give the other one --tls, too")
	errNoTLS    = errors.New("the other end does not use TLS: give it --tls, too, or leave it out here")
)

// secured is cfg for a control connection.
func secured(cfg *tls.Config) *tls.Config {
	c := cfg.Clone()
	c.MinVersion, c.NextProtos = tls.VersionTLS13, []string{alpn}
	c.SessionTicketsDisabled, c.ClientSessionCache = true, nil
	if get := cfg.GetConfigForClient; get != nil {
		c.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			chosen, err := get(h)
			if chosen != nil {
				chosen = secured(chosen)
			}
			return chosen, err
		}
	}
	return c
}

// secureDriver makes the driver's end of a control connection one of TLS.
func secureDriver(ctx context.Context, nc net.Conn, cfg *tls.Config) (net.Conn, error) {
	return handshake(ctx, tls.Client(nc, secured(cfg)))
}

// securePeer makes the peer's end of a control connection one of TLS. A driver without TLS
// is told why it is refused.
func securePeer(ctx context.Context, nc net.Conn, cfg *tls.Config) (net.Conn, error) {
	plain := newControl(nc)
	if begins, err := beginsTLS(plain.r); err != nil {
		return nil, err
	} else if !begins {
		_, _ = plain.r.ReadSlice('\n') // what is left unread would reset the connection, and the reply be lost
		return nil, errors.Join(errNeedsTLS, plain.send(reply{Error: errNeedsTLS.Error()}))
	}
	return handshake(ctx, tls.Server(&peeked{nc, plain.r}, secured(cfg)))
}

// A peeked is a connection whose first octets are in r.
type peeked struct {
	net.Conn
	r *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.r.Read(b) }

// handshake completes that of c, with the protocol agreed on.
func handshake(ctx context.Context, c *tls.Conn) (net.Conn, error) {
	err := c.HandshakeContext(ctx)
	var header tls.RecordHeaderError
	switch {
	case err == nil && c.ConnectionState().NegotiatedProtocol == alpn:
		return c, nil
	case err == nil:
		err = fmt.Errorf("the other end did not ask for the protocol %q (ALPN)", alpn)
	case errors.As(err, &header) && header.RecordHeader[0] == '{': // as requests and replies begin
		err = errNoTLS
	}
	return nil, &cm.TLSError{Err: err}
}

// recordHandshake is the type of the record that TLS begins with (RFC 8446 §5.1).
const recordHandshake = 22

// beginsTLS reports whether a record of TLS comes first.
func beginsTLS(r *bufio.Reader) (bool, error) {
	first, err := r.Peek(1)
	return err == nil && first[0] == recordHandshake, err
}

// refuseTLS returns an error if a record of TLS comes first. It consumes the record.
func refuseTLS(r *bufio.Reader) error {
	if begins, _ := beginsTLS(r); !begins {
		return nil // an error comes again
	}
	var header [5]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return err
	}
	if _, err := r.Discard(int(binary.BigEndian.Uint16(header[3:]))); err != nil {
		return err
	}
	return errors.New("this end does not use TLS: give it --tls, too, or leave it out at the other")
}
