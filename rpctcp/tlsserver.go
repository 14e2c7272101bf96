// The server's part of RPC with TLS: what becomes of a probe.

package rpctcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

// errEarly: a client has not waited for the answer to its probe. What it sent is
// discarded and not answered (RFC 9289 §5.1.1).
var errEarly = errors.New("octets came behind the probe for TLS before it was answered")

// serverProfile returns the configuration of a server with TLS.
func serverProfile(cfg *tls.Config) (*tls.Config, error) {
	cfg, err := profile(cfg)
	if err != nil {
		return nil, err
	}
	if len(cfg.Certificates) == 0 && cfg.GetCertificate == nil && cfg.GetConfigForClient == nil {
		return nil, errors.New("rpctcp: a server with TLS needs a certificate (RFC 9289 §4.2)")
	}
	if cfg.ClientAuth == tls.NoClientCert {
		cfg.ClientAuth = tls.RequestClientCert // RFC 9289 §4.2; it proves nothing
	}
	if each := cfg.GetConfigForClient; each != nil {
		cfg.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			c, err := each(hello)
			if c == nil || err != nil {
				return nil, err
			}
			return serverProfile(c)
		}
	}
	return cfg, nil
}

// probe looks at a call with AUTH_TLS. It reports whether it is a probe that begins TLS
// here; if it is not, the answer is in c.reject.
func (l *link) probe(c *served) bool {
	switch {
	case l.acceptTLS == nil, l.tls.Load() != nil, c.Proc != 0, len(c.Cred.Body) > 0:
		c.reject = badCred()
	case c.Verf.Flavor != oncrpc.FlavorNone || len(c.Verf.Body) > 0:
		c.reject = &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthBadVerf}
	case len(c.Args) > 0:
		c.reject = &oncrpc.AcceptError{Stat: oncrpc.GarbageArgs}
	default:
		return true
	}
	return false
}

// beginTLS answers a probe and changes the link over to TLS.
//
// Replies to earlier calls still go in the clear, so it waits for them. Nothing else is
// sent meanwhile, as it holds the token of line. What has been read already came in the
// clear and ends the link; so nothing that was sent before the handshake can be taken
// for something that was sent after it.
func (l *link) beginTLS(xid uint32) error {
	l.inside.Wait()
	select {
	case l.line <- struct{}{}:
	case <-l.ctx.Done():
		return context.Cause(l.ctx)
	}
	defer func() { <-l.line }()
	if l.ahead.Buffered() > 0 {
		return errEarly
	}
	l.readProgress.Store(time.Now().UnixNano())
	defer l.readProgress.Store(0)
	if err := l.room(l.calls, handshakeMemory, false); err != nil {
		return err
	}
	defer l.calls.Release(handshakeMemory)
	limit := time.Now().Add(min(l.stall, handshakeTime))
	if err := l.nc.SetWriteDeadline(limit); err != nil {
		return err
	}
	if err := l.setReadDeadline(limit); err != nil {
		return err
	}
	reply := oncrpc.Reply{XID: xid, Verf: oncrpc.OpaqueAuth{Body: []byte(startTLS)}}
	b, err := reply.Append(nil)
	if err != nil {
		return err
	}
	if err := l.wr.WriteRecord(b); err != nil {
		return err
	}
	return l.acceptHandshake()
}

// acceptHandshake has TLS begin on the link.
func (l *link) acceptHandshake() error {
	below := &belowTLS{Conn: l.nc, first: []byte{handshakeTLS}, most: l.mostRecords}
	conn := tls.Server(below, l.acceptTLS)
	if err := conn.HandshakeContext(l.ctx); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	s := newSecured(conn, below)
	if len(s.state.VerifiedChains) == 0 {
		s.state.PeerCertificates = nil // nobody has verified them
	}
	l.secure(s)
	l.lastUsed.Store(time.Now().UnixNano())
	// RFC 9289 §6.1: there is to be an audit log of the security chosen.
	l.log.Info("connection secured", "from", l.nc.RemoteAddr(), "security", l.from.Security(), "cipher", tls.CipherSuiteName(s.state.CipherSuite), "alpn", s.state.NegotiatedProtocol)
	return nil
}
