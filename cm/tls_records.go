// The connection below TLS: it reads ahead, and counts the records, since AES-GCM keys may
// protect a limited number and crypto/tls never begins to update them (RFC 8446 §5.5).
//
// Locking: there is none. crypto/tls reads under one lock of its own, and writes under
// another.

package cm

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"sync"
	"time"
)

// keyRecordLimit is 2^24.5 records, what RFC 8446 §5.5 allows for an AES-GCM key: 362 GiB
// in full records.
const keyRecordLimit = 23_726_566

// handshakeLimit is how many octets a peer may send before the handshake is over: more
// than any chain of certificates in use.
const handshakeLimit = 64 << 10

// Sizes of the read-ahead buffer, in octets: it grows while reads fill it.
const (
	leastAhead = 4 << 10
	mostAhead  = 128 << 10
)

type recordConn struct {
	net.Conn
	limit uint64        // of the records of one key
	near  chan struct{} // closed at three quarters of it, in either direction
	once  sync.Once

	// The reader's.
	buf        []byte
	start, end int // what of buf was not read by TLS
	in         records
	handshake  int // what the peer may still send before the handshake is over; negative is any

	out records // the writer's
}

func newRecordConn(nc net.Conn, limit uint64) *recordConn {
	if limit == 0 {
		limit = keyRecordLimit
	}
	return &recordConn{Conn: nc, limit: limit, near: make(chan struct{}), handshake: handshakeLimit}
}

// NetConn returns the connection below.
func (c *recordConn) NetConn() net.Conn { return c.Conn }

// SetWriteDeadline is called by crypto/tls alone, around its close_notify. The deadlines
// of the connection are its user's.
func (c *recordConn) SetWriteDeadline(time.Time) error { return nil }

// handshakeOver notes what was negotiated.
func (c *recordConn) handshakeOver(suite uint16) {
	c.handshake = -1
	if suite == tls.TLS_CHACHA20_POLY1305_SHA256 {
		c.limit = math.MaxUint64 // sequence numbers end earlier
	}
}

// Read returns octets of one record, as many as are there. So TLS never holds a part of
// the next one, and hasRecord knows whether it can read on.
func (c *recordConn) Read(p []byte) (int, error) {
	if c.start == c.end {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, c.buf[c.start:c.end])
	n = c.in.toEnd(p[:n])
	c.start += n
	c.worn(&c.in)
	return n, nil
}

// fill reads what there is.
func (c *recordConn) fill() error {
	if size := c.ahead(); size > len(c.buf) {
		c.buf = make([]byte, size)
	}
	room := c.buf
	if c.handshake >= 0 {
		room = room[:min(len(room), c.handshake+1)]
	}
	n, err := c.Conn.Read(room)
	c.start, c.end = 0, n
	if n == 0 && err == nil {
		err = errors.New("a read of nothing")
	}
	switch {
	case n > 0:
		err = nil // it comes again
	case err == io.EOF && c.handshake < 0:
		err = errTruncated // crypto/tls takes it for the end of the stream, between two records
	}
	if c.handshake >= 0 {
		if c.handshake -= n; c.handshake < 0 {
			return errors.New("the peer sent too much before the end of the handshake")
		}
	}
	return err
}

// ahead returns the size of the next read.
func (c *recordConn) ahead() int {
	if c.end == len(c.buf) {
		return min(max(leastAhead, 4*len(c.buf)), mostAhead)
	}
	return len(c.buf)
}

// hasRecord reports whether a whole record was read ahead. It is for the reader.
func (c *recordConn) hasRecord() bool {
	rest := c.buf[c.start:c.end]
	return len(rest) >= recordHeader && len(rest) >= recordHeader+int(binary.BigEndian.Uint16(rest[3:]))
}

// Write writes one record, or in a handshake several.
func (c *recordConn) Write(p []byte) (int, error) {
	c.out.count(p)
	c.worn(&c.out)
	if c.out.data > c.limit {
		return 0, ErrKeyLimit
	}
	return c.Conn.Write(p)
}

// worn tells when the key of a direction nears its limit.
func (c *recordConn) worn(r *records) {
	if r.data > c.limit/4*3 && !r.told {
		r.told = true
		c.once.Do(func() { close(c.near) })
	}
}

// errTruncated: somebody may have cut the stream.
var errTruncated = errors.New("the connection ended without close_notify (RFC 8446 §6.1)")

const recordHeader = 5

// applicationData is the type of every encrypted record (RFC 8446 §5.2).
const applicationData = 23

// A records follows the records of one direction.
type records struct {
	octets uint64
	data   uint64 // encrypted records
	told   bool
	header [recordHeader]byte
	have   int // octets of header
	rest   int // octets to the end of the record
}

// count counts the records in p.
func (r *records) count(p []byte) {
	for len(p) > 0 {
		p = p[r.toEnd(p):]
	}
}

// toEnd returns how many octets of p, which has at least one, belong to the record at its
// beginning, and counts them.
func (r *records) toEnd(p []byte) int {
	n := 0
	if r.rest == 0 {
		n = copy(r.header[r.have:], p)
		if r.have += n; r.have < recordHeader {
			r.octets += uint64(n)
			return n
		}
		r.have, r.rest = 0, int(binary.BigEndian.Uint16(r.header[3:]))
		if r.header[0] == applicationData {
			r.data++
		}
	}
	more := min(len(p)-n, r.rest)
	r.rest -= more
	r.octets += uint64(n + more)
	return n + more
}
