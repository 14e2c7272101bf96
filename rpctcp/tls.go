// This file is what both sides do about RPC with TLS (RFC 9289): what is set in their TLS
// configurations, and the link over TLS.
//
// A connection begins in the clear. The client's first message is a probe: NULL with a
// credential of AUTH_TLS. If the server's reply has the verifier STARTTLS, what follows
// in both directions is TLS, and messages go over that until the connection ends. The
// client probes before there is a link (tlsclient.go). The server's link changes over in the
// goroutine of run, which holds the token of line meanwhile (tlsserver.go).
//
// Deadlines are those of the connection below, and so is the end of the link. TLS only
// announces the end first, with an alert.

package rpctcp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weft-rdma/weft/oncrpc"
)

const (
	// protocolTLS is the protocol's name in ALPN (RFC 9289 §7.2).
	protocolTLS = "sunrpc"
	// startTLS is the body of the verifier by which a server agrees (RFC 9289 §4.1).
	startTLS = "STARTTLS"
	// handshakeTime limits a handshake, and a server's time for it when stalls may not
	// take as long.
	handshakeTime = 20 * time.Second
	// handshakeMemory is what a handshake counts as, in octets: crypto/tls keeps at most
	// 256 KiB of certificates and 64 KiB of any other message.
	handshakeMemory = 320 << 10
	// recordTLS is the most payload of a TLS record, in octets.
	recordTLS = 16 << 10
	// maxRecords is after how many records this side ends a connection, as crypto/tls
	// never begins a key update: RFC 8446 §5.5 allows 2^24.5 with AES-GCM. Of full
	// records they are 256 GiB.
	maxRecords = 1 << 24
)

// errNotTLS: what came behind the probe is not TLS. It is not answered (RFC 9289 §5.1.1).
var errNotTLS = errors.New("something else than TLS came after the agreement on it")

// profile returns a copy of cfg with what RFC 9289 §5 says: TLS 1.3 at least, the
// protocol sunrpc, and without resumption, so that each connection has its certificates
// verified. Records are as long as they can be from the first one on.
func profile(cfg *tls.Config) (*tls.Config, error) {
	if cfg.MaxVersion != 0 && cfg.MaxVersion < tls.VersionTLS13 {
		return nil, fmt.Errorf("rpctcp: RPC with TLS needs TLS 1.3; the configuration allows at most %s", tls.VersionName(cfg.MaxVersion))
	}
	cfg = cfg.Clone()
	cfg.MinVersion = tls.VersionTLS13
	cfg.NextProtos = []string{protocolTLS}
	cfg.SessionTicketsDisabled, cfg.ClientSessionCache = true, nil
	cfg.DynamicRecordSizingDisabled = true
	return cfg, nil
}

// A secured is TLS over a link's connection.
type secured struct {
	conn  *tls.Conn
	below *belowTLS
	out   *bufio.Writer // over conn: messages become few and full records
	state tls.ConnectionState
}

// newSecured returns what a link needs after the handshake of conn over below.
func newSecured(conn *tls.Conn, below *belowTLS) *secured {
	return &secured{conn: conn, below: below, out: bufio.NewWriterSize(conn, recordTLS), state: conn.ConnectionState()}
}

// close ends TLS with an alert (RFC 9289 §5.1.1), if that can be sent within a time, and closes
// the connection.
//
// Close of crypto/tls leaves out the alert while a write is in progress, of which the peer
// may have all octets. CloseWrite waits for it, no longer than the time.
func (s *secured) close(within time.Duration) {
	s.below.ending.Store(int64(within))
	_ = s.below.SetWriteDeadline(time.Now().Add(within)) // if it is closed, so be it
	_ = s.conn.CloseWrite()                              // the same
	s.conn.Close()
}

// worn reports whether the keys have been used for as many records as they may.
func (s *secured) worn() bool { return s.below.records.Load() >= s.below.most }

// secure makes the link go over TLS from here on. The caller holds the token of line, or
// has not started the link.
func (l *link) secure(s *secured) {
	from := *l.from
	from.TLS = &s.state
	l.from = &from
	l.ahead.Reset(s.conn)
	l.wr = l.writer(s.out)
	l.tls.Store(s)
}

// hangUp closes the connection. A server that ends has a limit of time for that.
func (l *link) hangUp() {
	if s := l.tls.Load(); s != nil {
		within := grace
		if why := context.Cause(l.ctx); why == ErrServerClosed || why == errDraining {
			within = lastGrace
		}
		s.close(within)
		return
	}
	l.nc.Close()
}

// flush sends what the last record has left in the buffer of TLS, and ends the link if it
// was one of the last that its keys allow.
func (l *link) flush() error {
	s := l.tls.Load()
	if s == nil {
		return nil
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	if s.worn() {
		l.retire()
	}
	return nil
}

// retire lets a link end as soon as nobody waits for a reply over it. A server takes no
// more calls; a client makes them over another link.
func (l *link) retire() {
	if l.place != nil {
		l.drain()
		return
	}
	l.retiring.Store(true)
}

// A belowTLS is the connection under TLS.
type belowTLS struct {
	net.Conn
	first   []byte // the octets that TLS may begin with
	begun   bool
	most    uint64        // records that may be written
	records atomic.Uint64 // that have been; TLS writes each by itself
	ending  atomic.Int64  // how long the last alert may take, which is to be written; 0 if it is not
}

// Types of TLS records (RFC 8446 §5.1).
const (
	alertTLS     = 21
	handshakeTLS = 22
)

// Read reads, and fails if the first octet of all is not one of TLS: crypto/tls would
// answer some.
func (b *belowTLS) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if n > 0 && !b.begun {
		b.begun = true
		if !slices.Contains(b.first, p[0]) {
			return 0, errNotTLS
		}
	}
	return n, err
}

func (b *belowTLS) Write(p []byte) (int, error) {
	b.records.Add(1)
	return b.Conn.Write(p)
}

// SetWriteDeadline is called by crypto/tls, for the alert at the end.
func (b *belowTLS) SetWriteDeadline(t time.Time) error {
	if within := time.Duration(b.ending.Load()); within > 0 {
		if limit := time.Now().Add(within); t.After(limit) {
			t = limit
		}
	}
	return b.Conn.SetWriteDeadline(t)
}

// badCred is the answer to AUTH_TLS where that cannot begin TLS (RFC 9289 §4.1).
func badCred() error {
	return &oncrpc.RejectError{Stat: oncrpc.AuthError, Auth: oncrpc.AuthBadCred}
}
